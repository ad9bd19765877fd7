#include "scenarios/scenario_hash.h"

#include "scenarios/catalogue.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

std::string HashWith(const std::vector<std::string>& overrides) {
  return ScenarioHash(Parse(kSmall, overrides));
}

TEST(ScenarioHash, IsOfWhatDeterminesTheResult) {
  const std::string hash = HashWith({});
  EXPECT_EQ(hash.size(), 32u);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(HashWith({"name=other", "workers=3", "devices=[cuda:0, cuda:1]",
                      "output={log: a.h5, world_every: 2, links_every: 1 s}"}),
            hash);
  // A node's devices share its work out and change nothing.
  EXPECT_EQ(HashWith({"training.micro_sequences=4", "devices=[cuda:0, cuda:1]",
                      "nodes.devices_per_node=2"}),
            HashWith({"training.micro_sequences=4"}));
  EXPECT_EQ(HashWith({"sync.every=5", "training.lr=0.003"}), hash);  // as they were
  for (const char* change : {"seed=2",
                             "training.compute_dtype=bfloat16",
                             "model.layers=5",
                             "data.held_out=0.03",
                             "data.domains.0.name=other",
                             "training.lr=0.0030000000000000005",
                             "nodes.compute.jitter=0.1",
                             "nodes.count=4",
                             "sync.every=6",
                             "sync.deadline=1 h",
                             "network.fidelity=ideal",
                             "network.tcp.seed=2",
                             "network.tcp.coarse_factor=3",
                             "network.routing=shortest",
                             "network.trace_interval=1 s",
                             "network.coordinator_link.conditions.diurnal.depth=0.1",
                             "network.coordinator_link.loss_burst=2",
                             "network.sites=[{name: lan}]",
                             "network.background=[{}]",
                             "network.background=[{flows: 2}]"}) {
    EXPECT_NE(HashWith({change}), hash) << change;
  }
}

TEST(ScenarioHash, AMeasuredStepTimeDoesNotCount) {
  const auto hash = [](const std::string& kind, const std::string& time) {
    return HashWith({"nodes.compute.kind=" + kind, "nodes.compute.step_time=" + time});
  };
  EXPECT_EQ(hash("measured", "1 s"), hash("measured", "2 s"));
  EXPECT_NE(hash("fixed", "1 s"), hash("fixed", "2 s"));
}

TEST(ScenarioHash, FilesCountByTheirContent) {
  const TempFolder folder;
  const std::string a = folder.Write("a", std::string(200'000, 'x'));
  const std::string b = folder.Write("deeper/b", std::string(200'000, 'x'));
  const std::string c = folder.Write("c", std::string(199'999, 'x') + "y");
  const auto hash = [&](const std::string& file) {
    return HashWith({"data.domains=[{name: t, files: [" + file + "]}]"});
  };
  EXPECT_EQ(hash(a), hash(b));
  EXPECT_NE(hash(a), hash(c));
}

TEST(ScenarioHash, TracesCountByTheirContent) {
  const TempFolder folder;
  const std::string a = folder.Write("a.trace", "1\n"), b = folder.Write("b.trace", "1\n");
  const std::string c = folder.Write("c.trace", "2\n");
  for (const char* key :
       {"network.coordinator_link.down_trace=", "network.coordinator_link.up_trace="}) {
    EXPECT_EQ(HashWith({key + a}), HashWith({key + b})) << key;
    EXPECT_NE(HashWith({key + a}), HashWith({key + c})) << key;
    EXPECT_NE(HashWith({key + a}), HashWith({})) << key;
  }
  const auto path = [&](const std::string& key, const std::string& file) {
    return HashWith({"network.paths=[{a: lan, b: wan, " + key + ": " + file + "}]",
                     "network.coordinator_site=lan"});
  };
  for (const char* key : {"trace", "trace_back"}) {
    EXPECT_EQ(path(key, a), path(key, b)) << key;
    EXPECT_NE(path(key, a), path(key, c)) << key;
  }
}

TEST(ScenarioHash, KnownFilesAreNotReadAgain) {
  const TempFolder folder;
  const std::string a = folder.Write("a.trace", "1\n");
  const Scenario s = Parse(kSmall, {"network.coordinator_link.down_trace=" + a});
  FileDigests known;
  const std::string hash = IdentityOf(s, known).hash;
  EXPECT_EQ(hash, ScenarioHash(s));
  EXPECT_EQ(known.size(), 1u);
  folder.Write("a.trace", "2\n");
  EXPECT_EQ(IdentityOf(s, known).hash, hash);
  EXPECT_NE(ScenarioHash(s), hash);
}

TEST(ScenarioHash, CorporaCountByTheirContent) {
  const TempFolder folder;
  folder.Write("scenarios/corpora.yaml",
               "alpha: {package: pa, files: [f]}\nbeta: {package: pb, files: [f]}\n");
  const Environment installed("SPES_SCENARIOS", folder.Path("scenarios"));
  const Environment deps("SPES_DEPS", folder.Path(""));
  folder.Write("corpora/pa/f", "text");
  const std::vector<std::string> change = {"data.domains=[{name: t, corpus: alpha}]"};
  Scenario s = Parse(kSmall, change);
  const std::string hash = ScenarioHash(s);
  ResolveCorpora(s.data);
  EXPECT_EQ(ScenarioHash(s), hash);
  folder.Write("corpora/pa/f", "Text");
  EXPECT_NE(ScenarioHash(s), hash);
  s = Parse(kSmall, {"data.domains=[beta]"});
  EXPECT_EQ(ErrorOf([&] { ScenarioHash(s); }),
            "corpus 'beta' is not here: run ./dev setup, which unpacks the package pb");
}

}  // namespace
}  // namespace spes::scenarios
