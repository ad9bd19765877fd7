#include <memory>
#include <utility>

#include "sim/fluid/fluid_engine.h"
#include "sim/network.h"

namespace spes::sim {
namespace {

// What has drained is at the receiver, half a round trip after it could first be there.
class NoTransport : public Transport {
 public:
  explicit NoTransport(std::shared_ptr<const LinkGraph> graph) : graph_(std::move(graph)) {}

  double efficiency() const override { return 1; }
  bool priorities() const override { return false; }
  bool windows() const override { return false; }

  Course Plan(const Flow& flow, Time now, bool) const override {
    Time latency{0};
    for (const int link : graph_->Route(flow.from, flow.to)) {
      latency += graph_->links()[link].DelayAt(now);
    }
    return {.weight = static_cast<double>(flow.streams),
            .latency = latency,
            .stages = {{.until = static_cast<double>(flow.bytes)}}};
  }

  double Queued(double) const override { return 0; }
  double AfterOvershoot(double window) const override { return window; }
  double AfterNarrowing(double window, double) const override { return window; }
  double AfterOutage(const Course&, double window, Time) const override { return window; }
  Time Timeout(const Course&) const override { return Time{0}; }
  double GrowNs(const Course&, double, double, double) const override { return 0; }

  double Weight(const Flow&, const Course& course, double) const override { return course.weight; }

  void Count(const Course&, double, FlowResult* result) const override {
    result->wire_bytes = result->delivered_bytes;
  }

  double AckBytes(const Flow&, double) const override { return 0; }

 private:
  std::shared_ptr<const LinkGraph> graph_;
};

}  // namespace

std::unique_ptr<Network> MakeIdealNetwork(const Topology& topology, const TcpConfig& tcp) {
  auto graph = std::make_shared<const LinkGraph>(topology, tcp);
  return std::make_unique<FluidEngine>(graph, tcp, std::make_unique<NoTransport>(graph));
}

}  // namespace spes::sim
