#include "scenarios/schema.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "scenarios/describe.h"
#include "scenarios/value_text.h"

namespace spes::scenarios {

namespace {

using Json = nlohmann::ordered_json;  // keys in the order of the description

// A number and its unit. Which units there are is sim/units.h's to know.
constexpr const char* kWithUnit = "^[0-9.][0-9.eE+-]* ?[A-Za-z]+$";
constexpr const char* kYamlFile = "\\.ya?ml$";

Json YamlFile() { return {{"type", "string"}, {"pattern", kYamlFile}}; }

// A whole number where it is one, so that a limit reads 1 and not 1.0.
Json JsonNumber(double x) {
  if (std::floor(x) == x && std::abs(x) < 0x1p53) return static_cast<std::int64_t>(x);
  return x;
}

void AddLimits(const Limits& limits, Json& schema) {
  if (std::isfinite(limits.min)) {
    schema[limits.above_min ? "exclusiveMinimum" : "minimum"] = JsonNumber(limits.min);
  }
  if (std::isfinite(limits.max)) {
    schema[limits.below_max ? "exclusiveMaximum" : "maximum"] = JsonNumber(limits.max);
  }
}

// Text with a unit, or 0 where the limits allow it, or the word for "not set".
Json WithUnit(const Field& field, const char* unset = nullptr) {
  const Json text = {{"type", "string"}, {"pattern", kWithUnit}};
  Json any = Json::array({text});
  if (field.limits.Allow(0)) any.push_back({{"const", 0}});
  if (unset != nullptr) any.push_back({{"const", unset}});
  if (any.size() == 1) return text;
  return {{"anyOf", std::move(any)}};
}

Json TypeOf(const Field& field, const Value& value) {
  Json schema;
  if (std::holds_alternative<bool*>(value)) {
    schema["type"] = "boolean";
    schema["default"] = *std::get<bool*>(value);
  } else if (std::holds_alternative<std::vector<std::string>*>(value)) {
    schema["anyOf"] = {{{"type", "array"}, {"items", {{"type", "string"}}}}, {{"type", "string"}}};
    schema["default"] = Json::array();
  } else if (const Choice* choice = std::get_if<Choice>(&value)) {
    schema["enum"] = choice->names;
    schema["default"] = ToText(field, value);
  } else if (std::holds_alternative<std::string*>(value)) {
    schema["type"] = "string";
    schema["default"] = ToText(field, value);
  } else if (ExampleUnit(field, value).empty()) {
    schema["type"] = std::holds_alternative<double*>(value) ? "number" : "integer";
    AddLimits(field.limits, schema);
    if (std::holds_alternative<std::uint64_t*>(value)) schema["minimum"] = 0;
    schema["default"] = Json::parse(ToText(field, value));
  } else {
    const bool optional = std::holds_alternative<std::optional<sim::Time>*>(value) ||
                          std::holds_alternative<std::optional<double>*>(value);
    schema = WithUnit(field, optional ? kUnset : nullptr);
    schema["default"] = ToText(field, value);
  }
  return schema;
}

class SchemaWriter : public Visitor {
 public:
  // A mapping with the fields that were visited.
  Json Take() {
    return {{"type", "object"},
            {"properties", std::move(properties_)},
            {"additionalProperties", false}};
  }

  void OnValue(const Field& field, const Value& value) override {
    const bool unit = !ExampleUnit(field, value).empty();
    Add(field, TypeOf(field, value),
        unit ? fmt::format("{} It is {}.", field.doc, Expected(field, value))
             : std::string(field.doc));
  }

  void OnSection(const Field& field, const Section& section) override {
    SchemaWriter inner;
    inner.AddBase();
    section.visit(inner);
    Add(field, {{"anyOf", {inner.Take(), YamlFile(), {{"type", "null"}}}}}, std::string(field.doc));
  }

  void OnList(const Field& field, const List& list) override {
    list.resize(1);
    SchemaWriter inner;
    inner.AddBase();
    list.visit(0, inner);
    Json items = Json::array({inner.Take(), YamlFile()});
    if (!list.shorthand.empty()) items[1] = {{"type", "string"}};
    Add(field, {{"type", "array"}, {"items", {{"anyOf", std::move(items)}}}},
        std::string(field.doc));
  }

  void AddBase() {
    properties_["base"] = YamlFile();
    properties_["base"]["description"] = "A file with values for the keys that are not given here.";
  }

 private:
  void Add(const Field& field, Json schema, std::string doc) {
    schema["description"] = std::move(doc);
    properties_[std::string(field.key)] = std::move(schema);
  }

  Json properties_ = Json::object();
};

}  // namespace

std::string ScenarioSchema() {
  Scenario defaults;
  SchemaWriter writer;
  writer.AddBase();
  Describe(defaults, writer);
  Json schema = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                 {"title", "spes-sim scenario"},
                 {"description", "One run of spes-sim: model, data, nodes, rounds and network."}};
  schema.update(writer.Take());
  return schema.dump(2) + "\n";
}

}  // namespace spes::scenarios
