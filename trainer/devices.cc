#include "trainer/devices.h"

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace spes::trainer {

DeviceName ParseDevice(const std::string& name) {
  if (name == "cpu") return {};
  constexpr std::string_view kCuda = "cuda:";
  if (name.starts_with(kCuda)) {
    const std::string_view digits = std::string_view(name).substr(kCuda.size());
    DeviceName device{.cuda = true};
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), device.index);
    const bool plain = std::to_string(device.index) == digits;  // no sign, no zeros in front
    if (error == std::errc() && plain && device.index >= 0 && device.index < 128) return device;
  }
  throw std::invalid_argument("'" + name + "' is no device; there are cpu, cuda:0, cuda:1 …");
}

std::vector<std::string> DevicesOfNode(std::span<const std::string> devices, int per_node,
                                       int node) {
  const int count = static_cast<int>(devices.size());
  if (per_node < 1 || count == 0 || count % per_node != 0) {
    throw std::invalid_argument("devices_per_node is " + std::to_string(per_node) +
                                ", which does not divide the " + std::to_string(count) +
                                " devices");
  }
  const auto own = devices.subspan(static_cast<std::size_t>(node % (count / per_node) * per_node),
                                   static_cast<std::size_t>(per_node));
  return {own.begin(), own.end()};
}

}  // namespace spes::trainer
