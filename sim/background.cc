#include "sim/background.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <utility>

namespace spes::sim {
namespace {

constexpr std::int64_t kEndless = 1'000'000'000'000;  // bytes of one transfer after the other
constexpr Time kAfterFailure = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::milliseconds(100);  // wall time of one AdvanceTo

class Background : public Network {
 public:
  Background(std::unique_ptr<Network> network, const std::vector<BackgroundFlow>& flows,
             std::uint64_t seed)
      : network_(std::move(network)) {
    for (const BackgroundFlow& flow : flows) {
      if (flow.bytes < 0) throw std::invalid_argument("background traffic of a negative size");
      if (flow.mean_pause < Time{0}) {
        throw std::invalid_argument("background traffic with a negative pause");
      }
      network_->Prepare(flow.from, flow.to, flow.streams);
      std::seed_seq mixed{seed & 0xffffffff, seed >> 32, std::uint64_t{sources_.size()}};
      Source& source = sources_.emplace_back(Source{flow, std::mt19937_64(mixed), {}});
      source.next = Pause(source);
    }
  }

  Time Now() const override { return network_->Now(); }

  void Prepare(int from, int to, int streams) override { network_->Prepare(from, to, streams); }

  FlowId Start(const Flow& flow, OnDone done) override {
    const FlowId id =
        network_->Start(flow, [this, done = std::move(done)](const FlowResult& result) {
          active_.erase(result.id);
          ++ended_;
          if (done) done(result);
        });
    active_.insert(id);
    return id;
  }

  void Cancel(FlowId id) override {
    if (active_.contains(id)) network_->Cancel(id);
  }

  // Of all flows, so a lower bound: what ends in the background, or begins, comes first or delays.
  std::optional<Time> NextEvent() const override {
    if (active_.empty()) return std::nullopt;
    return network_->NextEvent();
  }

  Time AdvanceTo(Time t) override {
    if (t < Now()) throw std::logic_error("virtual time cannot go back");
    const auto begin = std::chrono::steady_clock::now();
    const std::uint64_t ended = ended_;
    for (;;) {
      // With nothing to wait for, time without end would be filled with the traffic of others.
      if (t == kNever && active_.empty()) return Now();
      Time until = t;
      for (Source& source : sources_) {
        if (source.next && *source.next <= Now()) Begin(source);
        if (source.next) until = std::min(until, *source.next);
      }
      const Time reached = network_->AdvanceTo(until);
      if (ended_ != ended || reached >= t) return reached;
      if (std::chrono::steady_clock::now() - begin > kPatience) return reached;
    }
  }

  const LinkGraph& graph() const override { return network_->graph(); }

  std::vector<LinkUsage> Usage() const override { return network_->Usage(); }

 private:
  struct Source {
    BackgroundFlow flow;
    std::mt19937_64 random;
    std::optional<Time> next;  // when it begins; nothing while it runs
  };

  static Time Pause(Source& source) {
    if (source.flow.bytes == 0 || source.flow.mean_pause == Time{0}) return Time{0};
    const double uniform = static_cast<double>(source.random() >> 11) * 0x1p-53;  // [0, 1)
    return FromSeconds(-std::log1p(-uniform) * ToSeconds(source.flow.mean_pause));
  }

  void Begin(Source& source) {
    const BackgroundFlow& flow = source.flow;
    source.next.reset();
    network_->Start({.from = flow.from,
                     .to = flow.to,
                     .bytes = flow.bytes == 0 ? kEndless : flow.bytes,
                     .streams = flow.streams,
                     .stranger = true},
                    [this, &source](const FlowResult& result) {
                      Time pause = Pause(source);
                      if (result.outcome != FlowOutcome::kDone) {
                        pause = std::max(pause, kAfterFailure);
                      }
                      source.next = result.end + pause;
                    });
  }

  std::vector<Source> sources_;
  std::set<FlowId> active_;  // of the run
  std::uint64_t ended_ = 0;  // flows of the run that have ended
  const std::unique_ptr<Network> network_;
};

}  // namespace

std::unique_ptr<Network> MakeBackground(std::unique_ptr<Network> network,
                                        const std::vector<BackgroundFlow>& flows,
                                        std::uint64_t seed) {
  return std::make_unique<Background>(std::move(network), flows, seed);
}

}  // namespace spes::sim
