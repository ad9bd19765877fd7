// spes_network_validation FOLDER [PART...]: the network levels against laws and against each other,
// one CSV per part in FOLDER, and a line for every bound. Exits with 1 when a bound is not kept.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/validation/experiments.h"

namespace spes::validation {
namespace {

double Percent(double value, double reference) { return 100 * (value / reference - 1); }

// A CSV file and the worst deviation of what must stay within a bound.
class Table {
 public:
  Table(const std::filesystem::path& folder, const std::string& name, const std::string& header)
      : file_(folder / (name + ".csv")), name_(name) {
    if (!file_) throw std::runtime_error("cannot write into " + folder.string());
    file_ << header << '\n';
  }

  void Row(const std::string& row) {
    file_ << row << '\n' << std::flush;
    std::printf("%s: %s\n", name_.c_str(), row.c_str());
    std::fflush(stdout);
  }

 private:
  std::ofstream file_;
  std::string name_;
};

class Bounds {
 public:
  // `percent` must lie within ± `most`.
  void Within(const std::string& what, double percent, double most) {
    Worst& worst = worst_[what];
    worst.most = most;
    ++worst.count;
    if (std::abs(percent) > std::abs(worst.percent)) worst.percent = percent;
  }

  void AtMost(const std::string& what, double value, double most) {
    limits_.push_back({what, value, most, value <= most});
  }
  void AtLeast(const std::string& what, double value, double least) {
    limits_.push_back({what, value, least, value >= least});
  }

  // Prints all; whether all are kept.
  bool Report() const {
    bool kept = true;
    for (const auto& [what, worst] : worst_) {
      const bool ok = std::abs(worst.percent) <= worst.most;
      std::printf("%s %s: worst of %d is %+.1f %%, bound %.0f %%\n", ok ? "kept" : "NOT KEPT",
                  what.c_str(), worst.count, worst.percent, worst.most);
      kept &= ok;
    }
    for (const auto& [what, value, bound, ok] : limits_) {
      std::printf("%s %s: %.3g, bound %.3g\n", ok ? "kept" : "NOT KEPT", what.c_str(), value,
                  bound);
      kept &= ok;
    }
    return kept;
  }

 private:
  struct Worst {
    double percent = 0, most = 0;
    int count = 0;
  };
  struct Limit {
    std::string what;
    double value, bound;
    bool ok;
  };
  std::map<std::string, Worst> worst_;
  std::vector<Limit> limits_;
};

const std::vector<std::string> kOthers = {"coarse", "hybrid", "fluid"};

void Single(const std::filesystem::path& folder, Bounds& bounds) {
  Table table(
      folder, "single_flow",
      "mbps,rtt_ms,mbyte,law_s,smooth_law_s,packet_s,coarse_s,hybrid_s,fluid_s,packet_cpu_s,"
      "coarse_cpu_s,hybrid_cpu_s,fluid_cpu_s");
  for (const double mbps : {10, 100, 1000}) {
    for (const double rtt_ms : {10, 50, 150}) {
      for (const int mbyte : {1, 20, 200}) {
        const SingleFlow flow{
            .mbps = mbps, .rtt_ms = rtt_ms, .bytes = mbyte * std::int64_t{1'000'000}};
        const Run packet = RunSingleFlow(LevelNamed("packet"), flow);
        bounds.Within("one lossless flow, packet against the law",
                      Percent(packet.virtual_s, LosslessLaw(flow)), 2);
        std::string times = fmt::format("{:.4f}", packet.virtual_s);
        std::string cpu = fmt::format("{:.4f}", packet.cpu_s);
        for (const std::string& level : kOthers) {
          const Run run = RunSingleFlow(LevelNamed(level), flow);
          bounds.Within("one lossless flow, " + level + " against packet",
                        Percent(run.virtual_s, packet.virtual_s), 5);
          times += fmt::format(",{:.4f}", run.virtual_s);
          cpu += fmt::format(",{:.4f}", run.cpu_s);
        }
        table.Row(fmt::format("{},{},{},{:.4f},{:.4f},{},{}", mbps, rtt_ms, mbyte,
                              LosslessLaw(flow), SmoothLaw(flow), times, cpu));
      }
    }
  }
}

void Loss(const std::filesystem::path& folder, Bounds& bounds) {
  Table table(folder, "random_loss",
              "congestion,rtt_ms,loss,law_mbps,packet_mbps,coarse_mbps,hybrid_mbps,fluid_mbps");
  constexpr int kSeeds = 5;
  for (const std::string congestion : {"reno", "cubic"}) {
    for (const double rtt_ms : {20, 100}) {
      for (const double loss : {1e-4, 1e-3}) {
        SingleFlow flow{.mbps = 1000, .rtt_ms = rtt_ms, .loss = loss};
        flow.tcp.congestion = congestion;
        const double law = LossLaw(flow);
        // A link little wider than the law, so that slow start does not end far above it, and five
        // hundred losses in all.
        flow.mbps = 4 * law;
        flow.bytes = std::llround(100 / loss * 1448);
        const auto mean = [&](const std::string& level) {
          double rate = 0;
          for (int seed = 1; seed <= kSeeds; ++seed) {
            flow.tcp.seed = static_cast<std::uint64_t>(seed);
            rate += static_cast<double>(flow.bytes) * 8e-6 /
                    RunSingleFlow(LevelNamed(level), flow).virtual_s / kSeeds;
          }
          return rate;
        };
        const double packet = mean("packet");
        std::string row =
            fmt::format("{},{},{},{:.2f},{:.2f}", congestion, rtt_ms, loss, law, packet);
        bounds.Within(fmt::format("random loss, {}: packet against the law", congestion),
                      Percent(packet, law), 15);
        for (const std::string& level : kOthers) {
          const double rate = mean(level);
          bounds.Within("random loss, " + level + " against packet", Percent(rate, packet), 15);
          row += fmt::format(",{:.2f}", rate);
        }
        table.Row(row);
      }
    }
  }
}

void Fan(const std::filesystem::path& folder, Bounds& bounds) {
  Table table(folder, "fan", "direction,level,seed,makespan_s,median_s,p90_s,cpu_s");
  constexpr int kSeeds = 5;
  for (const bool in : {true, false}) {
    std::map<std::string, FanRun> mean;
    for (const std::string level : {"packet", "coarse", "hybrid", "fluid"}) {
      for (int seed = 1; seed <= kSeeds; ++seed) {
        const FanRun run =
            RunFan(LevelNamed(level), in, 200'000'000, static_cast<std::uint64_t>(seed));
        table.Row(fmt::format("{},{},{},{:.3f},{:.3f},{:.3f},{:.4f}", in ? "in" : "out", level,
                              seed, run.makespan_s, run.median_s, run.p90_s, run.cpu_s));
        mean[level].makespan_s += run.makespan_s / kSeeds;
        mean[level].median_s += run.median_s / kSeeds;
        mean[level].p90_s += run.p90_s / kSeeds;
      }
      for (const auto& [name, value] :
           {std::pair("makespan", &FanRun::makespan_s), std::pair("median", &FanRun::median_s),
            std::pair("90th percentile", &FanRun::p90_s)}) {
        if (level == "packet") continue;
        bounds.Within(
            fmt::format("sixteen flows {}, {}: {} against packet", in ? "in" : "out", level, name),
            Percent(mean[level].*value, mean["packet"].*value), level == "hybrid" ? 10 : 20);
      }
    }
  }
}

void Speed(const std::filesystem::path& folder, Bounds& bounds) {
  Table table(folder, "speed", "what,level,scale,virtual_s,cpu_s");
  const auto run = [&](const std::string& what, const std::string& level, double scale,
                       const Run& r) {
    table.Row(fmt::format("{},{},{},{:.3f},{:.4f}", what, level, scale, r.virtual_s, r.cpu_s));
    return r;
  };
  constexpr double kPart = 0.01;  // of the bytes, for what packets can do
  const Run packet =
      run("SPES-2B round", "packet", kPart, RunSpesRound(LevelNamed("packet"), kPart));
  const Run hybrid = run("SPES-2B round", "hybrid", 1, RunSpesRound(LevelNamed("hybrid"), 1));
  const Run fluid = run("SPES-2B round", "fluid", 1, RunSpesRound(LevelNamed("fluid"), 1));
  run("SPES-2B round", "hybrid", kPart, RunSpesRound(LevelNamed("hybrid"), kPart));
  run("SPES-2B round", "fluid", kPart, RunSpesRound(LevelNamed("fluid"), kPart));
  bounds.AtMost("SPES-2B round, hybrid, s", hybrid.cpu_s, 10);
  bounds.AtMost("SPES-2B round, fluid, s", fluid.cpu_s, 0.1);
  bounds.AtLeast("SPES-2B round, packet (extrapolated from a hundredth) ÷ hybrid",
                 packet.cpu_s / kPart / hybrid.cpu_s, 1000);
  bounds.Within("SPES-2B round, fluid against hybrid", Percent(fluid.virtual_s, hybrid.virtual_s),
                5);
  const Run many =
      run("1000 nodes, 100 rounds", "fluid", 1, RunManyNodes(LevelNamed("fluid"), 1000, 100));
  bounds.AtMost("1000 nodes, 100 rounds, fluid, s", many.cpu_s, 10);
}

int Main(int argc, char** argv) {
  using Part = void (*)(const std::filesystem::path&, Bounds&);
  const std::vector<std::pair<std::string, Part>> parts = {
      {"single", Single}, {"loss", Loss}, {"fan", Fan}, {"speed", Speed}};
  if (argc < 2) {
    std::fputs("spes_network_validation FOLDER [single|loss|fan|speed ...]\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const std::vector<std::string> wanted(argv + 2, argv + argc);
  for (const std::string& name : wanted) {
    if (std::ranges::none_of(parts, [&](const auto& part) { return part.first == name; })) {
      std::fprintf(stderr, "there is no part '%s': single, loss, fan or speed\n", name.c_str());
      return 2;
    }
  }
  std::filesystem::create_directories(folder);
  Bounds bounds;
  for (const auto& [name, part] : parts) {
    if (wanted.empty() || std::ranges::find(wanted, name) != wanted.end()) part(folder, bounds);
  }
  return bounds.Report() ? 0 : 1;
}

}  // namespace
}  // namespace spes::validation

int main(int argc, char** argv) {
  try {
    return spes::validation::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
