// The one description of every field of a scenario: key, docstring, unit, limits, and where its
// value is. Visitors read it from YAML, print it, and write the JSON schema.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scenarios/catalogue.h"
#include "scenarios/scenario.h"

namespace spes::scenarios {

struct Limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool above_min = false;  // `min` itself is not allowed
  bool below_max = false;  // `max` itself is not allowed

  bool Allow(double x) const;
  // " of at least 1", " above 0 and below 1"; empty without limits.
  std::string Text(const std::function<std::string(double)>& number) const;
};

// What a number or text stands for, where its type does not say it.
enum class Unit {
  kNone,
  kBitRate,    // double, bit/s
  kByteSize,   // int64
  kInputFile,  // text: a file that must exist
};

struct Field {
  std::string_view key;
  std::string_view doc;
  Limits limits = {};
  Unit unit = Unit::kNone;
};

// One of several names.
struct Choice {
  std::vector<std::string_view> names;
  std::function<std::size_t()> get;  // index of `names`
  std::function<void(std::size_t)> set;
};

// Where a field's value is. Numbers are finite; durations are not negative. An optional number is a
// rate (Unit::kBitRate).
using Value = std::variant<bool*, int*, std::int64_t*, std::uint64_t*, double*, std::string*,
                           sim::Time*, std::optional<double>*, std::optional<sim::Time>*,
                           std::vector<std::string>*, Choice>;

class Visitor;
struct Tree;

// Fields of their own under one key.
struct Section {
  std::function<void(Visitor&)> visit;
  std::function<void()> reset;  // to the defaults
  // Whether nothing in it has an effect, so that {} says as much; never where empty.
  std::function<bool()> idle = {};
};

// Any number of sections under one key.
struct List {
  std::function<std::size_t()> size;
  std::function<void(std::size_t)> resize;  // new items hold the defaults
  std::function<void(std::size_t, Visitor&)> visit;
  std::function<void(std::size_t)> reset;
  std::string_view shorthand;  // an item may be this field's value alone; empty: it may not
};

class Visitor {
 public:
  virtual ~Visitor() = default;
  virtual void OnValue(const Field& field, const Value& value) = 0;
  virtual void OnSection(const Field& field, const Section& section) = 0;
  virtual void OnList(const Field& field, const List& list) = 0;
  // Whatever YAML is written there, for its owner to make sense of; no scenario has such a field.
  virtual void OnTree(const Field&, Tree&) {}
};

// Visits the fields in the order in which they are printed.
void Describe(Scenario& scenario, Visitor& visitor);
void Describe(trainer::ModelConfig& model, Visitor& visitor);
void Describe(CorpusEntry& entry, Visitor& visitor);

}  // namespace spes::scenarios
