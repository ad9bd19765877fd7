#include "scenarios/schema.h"

#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/printer.h"
#include "scenarios/yaml_tree.h"
#include "tests/scenarios/scenario_testing.h"

namespace spes::scenarios {
namespace {

using Json = nlohmann::json;

// The object among the ways to write a section or a list's item.
const Json& Mapping(const Json& schema) {
  if (schema.contains("properties")) return schema;
  for (const Json& way : schema.at("anyOf")) {
    if (way.contains("properties")) return way;
  }
  throw std::runtime_error("no mapping in " + schema.dump());
}

// Every key of the printed scenario is in the schema, with what an editor shows.
void Compare(const Tree& tree, const Json& schema, const std::string& path) {
  const Json& mapping = Mapping(schema);
  EXPECT_EQ(mapping.at("type"), "object") << path;
  EXPECT_EQ(mapping.at("additionalProperties"), false) << path;
  std::set<std::string> keys = {"base"};
  for (std::size_t i = 0; i < tree.keys.size(); ++i) {
    const std::string key = tree.keys[i].name;
    const std::string at = path + "." + key;
    keys.insert(key);
    ASSERT_TRUE(mapping.at("properties").contains(key)) << at;
    const Json& field = mapping.at("properties").at(key);
    EXPECT_GT(field.at("description").get<std::string>().size(), 6u) << at;
    const Tree& value = tree.items[i];
    if (value.kind == Tree::Kind::kMap) {
      if (!value.items.empty()) Compare(value, field, at);  // {}: printed in short
    } else if (field.contains("items")) {
      EXPECT_EQ(field.at("type"), "array") << at;
      for (const Tree& item : value.items) Compare(item, field.at("items"), at);
    } else {
      EXPECT_TRUE(field.contains("default")) << at;
      EXPECT_TRUE(field.contains("type") || field.contains("enum") || field.contains("anyOf"))
          << at;
    }
  }
  for (const auto& [key, field] : mapping.at("properties").items()) {
    EXPECT_TRUE(keys.contains(key)) << path << "." << key;
  }
}

TEST(Schema, ListsEveryKey) {
  const Json schema = Json::parse(ScenarioSchema());
  EXPECT_EQ(schema.at("$schema"), "http://json-schema.org/draft-07/schema#");
  const Scenario scenario =
      Parse(kSmall, {"nodes.groups=[{count: 2}]", "network.paths=[{a: lan, b: lan}]",
                     "network.coordinator_site=lan", "network.sites=[{name: lan}]",
                     "network.background=[{}]"});
  Compare(ParseYaml(PrintScenario(scenario), "printed"), schema, "");
}

TEST(Schema, SaysTypesLimitsNamesAndDefaults) {
  const Json schema = Json::parse(ScenarioSchema());
  const auto field = [&](const std::string& section, const std::string& key) {
    return Mapping(schema.at("properties").at(section)).at("properties").at(key);
  };
  EXPECT_EQ(field("sync", "every").at("type"), "integer");
  EXPECT_EQ(field("sync", "every").at("minimum"), 1);
  EXPECT_EQ(field("sync", "every").at("default"), 25);
  EXPECT_EQ(field("training", "lr").at("type"), "number");
  EXPECT_EQ(field("training", "lr").at("exclusiveMinimum"), 0);
  EXPECT_EQ(field("data", "held_out").at("exclusiveMaximum"), 1);
  EXPECT_EQ(field("sync", "allocation").at("enum"),
            Json({"contiguous", "round_robin", "all", "memory", "load", "bandwidth", "list"}));
  EXPECT_EQ(field("sync", "allocation").at("default"), "contiguous");
  EXPECT_EQ(field("sync", "deadline").at("default"), "none");
  EXPECT_EQ(field("network", "fidelity").at("default"), "packet");
  EXPECT_EQ(field("model", "renormalise_top_k").at("type"), "boolean");
  EXPECT_EQ(schema.at("properties").at("seed").at("minimum"), 0);
  const Json up = Mapping(field("network", "coordinator_link")).at("properties").at("up");
  EXPECT_EQ(up.at("type"), "string");
  EXPECT_EQ(up.at("default"), "10 Gbps");
  EXPECT_NE(up.at("description").get<std::string>().find("'100 Mbps'"), std::string::npos);
}

}  // namespace
}  // namespace spes::scenarios
