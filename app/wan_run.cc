#include "app/wan_run.h"

#include <fmt/format.h>

#include <stdexcept>

#ifdef SPES_NS3
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <optional>

#include "app/host_processes.h"
#include "app/interrupt.h"
#include "app/terminal.h"
#include "app/wan_text.h"
#include "sim/link_graph.h"
#include "sim/netns/host_namespaces.h"
#include "sim/ns3/emulation.h"
#endif

namespace spes::app {

std::string WanPlan::HostName(int host) const {
  return host == coordinator() ? "coordinator" : std::to_string(host);
}

#ifdef SPES_NS3

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::seconds kStatusEvery{5};
constexpr double kLeastBuffer = 32 << 20, kMostBuffer = 1 << 30;

// What the buffers of a connection may grow to: a window that fills its path and the queue there,
// as the kernel counts it, overhead and all.
std::int64_t TcpBuffer(const sim::Topology& topology, const sim::TcpConfig& tcp) {
  const sim::LinkGraph graph(topology, tcp);
  double most = 0;
  for (int a = 0; a < graph.hosts(); ++a) {
    for (int b = 0; b < graph.hosts(); ++b) {
      if (a == b) continue;
      const double rtt_s = sim::ToSeconds(graph.LongestRttFrom(a, b, sim::Time{0}));
      double window = graph.BottleneckBps(a, b) / 8 * rtt_s;
      for (const int link : graph.Route(a, b)) {
        if (graph.links()[link].bps == graph.BottleneckBps(a, b)) {
          window += graph.links()[link].queue_bytes;
        }
      }
      most = std::max(most, window);
    }
  }
  return static_cast<std::int64_t>(std::clamp(4 * most, kLeastBuffer, kMostBuffer));
}

sim::HostNamespacesSettings Settings(const WanPlan& plan) {
  sim::HostNamespacesSettings settings{.prefix = plan.prefix,
                                       .nodes = plan.coordinator(),
                                       .macs = {},
                                       .mtu = sim::Emulation::Mtu(plan.tcp),
                                       .congestion = plan.tcp.congestion,
                                       .initial_window = plan.tcp.initial_window,
                                       .tcp_buffer = TcpBuffer(plan.topology, plan.tcp)};
  for (int host = 0; host <= plan.coordinator(); ++host) {
    settings.macs.push_back(sim::MacOfHost(host));
  }
  return settings;
}

// Of this process, all threads.
double CpuSeconds() {
  timespec cpu;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  return static_cast<double>(cpu.tv_sec) + static_cast<double>(cpu.tv_nsec) * 1e-9;
}

class WanSession {
 public:
  explicit WanSession(const WanPlan& plan)
      : plan_(plan),
        hosts_(Settings(plan)),
        emulation_(plan.topology, plan.tcp, hosts_.TakeTaps()) {}

  int Run(const std::atomic<bool>& stop) {
    if (plan_.command.empty()) {
      KeepUp(stop);
      return 0;
    }
    const std::string failures = RunCommands(stop);
    if (stop) return 128 + InterruptSignal();
    if (!failures.empty()) throw std::runtime_error("wan: " + failures);
    return 0;
  }

 private:
  void KeepUp(const std::atomic<bool>& stop) {
    std::cout << WanTable(plan_, hosts_)
              << fmt::format("ip netns exec {} COMMAND runs a command there; Ctrl-C ends it all\n",
                             hosts_.name(0))
              << std::flush;
    WanCounts before = Counts();
    Clock::time_point next = start_ + kStatusEvery;
    while (!stop) {
      Sleep();
      if (Clock::now() < next) continue;
      next = Clock::now() + kStatusEvery;
      const WanCounts now = Counts();
      line_.Show(WanStatus(before, now));
      Warn(before, now);
      before = now;
    }
    line_.End();
    std::cout << WanVerdict(Counts(), emulation_.links()) << std::endl;
  }

  // Returns HostProcesses::Failures; of the first alone where that ends all.
  std::string RunCommands(const std::atomic<bool>& stop) {
    std::vector<HostToRun> hosts;
    for (const int host : plan_.hosts) {
      hosts.push_back({plan_.topology.hosts[host].name,
                       hosts_.space(host),
                       {{"SPES_HOST", plan_.HostName(host)},
                        {"SPES_ADDRESS", hosts_.Address(host)},
                        {"SPES_COORDINATOR", hosts_.Address(plan_.coordinator())}}});
    }
    HostProcesses processes(hosts, plan_.command);
    WanCounts before = Counts();
    std::string first;
    for (Clock::time_point next = start_ + kStatusEvery; !processes.Done();) {
      processes.Pump(kLook);
      if (plan_.halt_on_failure && first.empty()) first = processes.Failures();
      if (stop || !first.empty()) processes.Stop();
      if (Clock::now() < next) continue;
      next = Clock::now() + kStatusEvery;
      const WanCounts now = Counts();
      Warn(before, now);
      before = now;
    }
    std::cerr << WanVerdict(Counts(), emulation_.links()) << std::endl;
    return first.empty() ? processes.Failures() : first;  // the others were ended
  }

  static void Sleep() {
    const timespec look{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kLook).count()};
    nanosleep(&look, nullptr);  // a signal ends it
  }

  // Once.
  void Warn(const WanCounts& before, const WanCounts& now) {
    if (warned_) return;
    const std::string warning = WanTooSlow(before, now);
    warned_ = !warning.empty();
    if (warned_) line_.Print(warning);
  }

  WanCounts Counts() {
    return {.emulation = emulation_.Counts(),
            .device_drops = hosts_.DroppedByDevices(),
            .wall_s = std::chrono::duration<double>(Clock::now() - start_).count(),
            .cpu_s = CpuSeconds() - start_cpu_s_};
  }

  const WanPlan& plan_;
  sim::HostNamespaces hosts_;
  sim::Emulation emulation_;
  LiveLine line_;
  bool warned_ = false;
  Clock::time_point start_ = Clock::now();
  double start_cpu_s_ = CpuSeconds();
};

}  // namespace

int RunWan(const WanPlan& plan) {
  if (plan.coordinator() >= sim::Emulation::kMostHosts) {
    throw std::invalid_argument(fmt::format("nodes: {} of them; wan has room for {} on one machine",
                                            plan.coordinator(), sim::Emulation::kMostHosts - 1));
  }
  const std::atomic<bool>& stop = InstallInterruptHandlers();
  try {
    return WanSession(plan).Run(stop);
  } catch (const std::runtime_error&) {
    if (!stop) throw;  // Ctrl-C ends the commands that set up, too
    return 128 + InterruptSignal();
  }
}

#else

int RunWan(const WanPlan&) {
  throw std::invalid_argument(
      "wan: needs ns-3, which this program was built without; build with -DSPES_NS3=ON");
}

#endif

}  // namespace spes::app
