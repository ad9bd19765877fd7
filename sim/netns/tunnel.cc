#include "sim/netns/tunnel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>

namespace spes::sim {

Descriptor OpenTunnel(const Namespace& space, const TunnelSettings& settings) {
  const bool frames = settings.carries == TunnelSettings::Carries::kEthernetFrames;
  Descriptor tunnel;
  // A device is made in the namespace of whoever opens the file.
  space.Run([&] {
    const int mode = O_RDWR | O_CLOEXEC | (settings.blocking ? 0 : O_NONBLOCK);
    tunnel = Descriptor(Check(open("/dev/net/tun", mode), "/dev/net/tun"));
    ifreq request{};
    settings.device.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_flags = static_cast<short>((frames ? IFF_TAP : IFF_TUN) | IFF_NO_PI);
    Check(ioctl(tunnel.get(), TUNSETIFF, &request), frames ? "a TAP device" : "a TUN device");
    Check(ioctl(tunnel.get(), TUNSETOFFLOAD, 0), "a tunnel without offloading");
  });
  const std::string mac = settings.mac.empty() ? "" : " address " + settings.mac;
  space.Command(fmt::format("ip link set dev {}{} txqueuelen {} mtu {} up", settings.device, mac,
                            settings.queue_length, settings.mtu));
  space.Command(fmt::format("ip address add {} dev {}", settings.address, settings.device));
  return tunnel;
}

}  // namespace spes::sim
