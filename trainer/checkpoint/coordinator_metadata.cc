#include "trainer/checkpoint/coordinator_metadata.h"

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace spes::trainer {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "spes-coordinator-2";

template <class Moments>
std::vector<std::optional<std::int64_t>> UpdatesOf(const std::vector<Moments>& moments) {
  std::vector<std::optional<std::int64_t>> updates;
  for (const Moments& m : moments) {
    updates.push_back(m ? std::optional(m->updates) : std::nullopt);
  }
  return updates;
}

void CheckList(const char* name, std::size_t size, std::int64_t expected, bool may_be_empty) {
  if (size == static_cast<std::size_t>(expected) || (may_be_empty && size == 0)) return;
  throw std::invalid_argument(
      fmt::format("is of another model: '{}' has {} entries, not {}", name, size, expected));
}

template <std::integral T>
void CheckRange(const char* name, T value, T lowest, T highest) {
  if (value >= lowest && value <= highest) return;
  throw std::invalid_argument(
      fmt::format("has {} in '{}', which must be {} to {}", value, name, lowest, highest));
}

void CheckIds(const char* name, const std::vector<BlockId>& ids, const BlockTable& table) {
  BlockId before = -1;
  for (const BlockId id : ids) {
    CheckRange<BlockId>(name, id, 0, table.size() - 1);
    if (id <= before) throw std::invalid_argument(fmt::format("has '{}' out of order", name));
    before = id;
  }
}

json ToJson(const std::vector<std::optional<std::int64_t>>& updates) {
  json list = json::array();
  for (const auto& u : updates) list.push_back(u ? json(*u) : json(nullptr));
  return list;
}

std::string Dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The metadata's entries by their names.
class Fields {
 public:
  explicit Fields(const std::map<std::string, std::string>& metadata) : metadata_(metadata) {}

  const std::string& Text(const char* name) const {
    const auto found = metadata_.find(name);
    if (found == metadata_.end()) {
      throw std::invalid_argument(fmt::format("has no '{}' in its metadata", name));
    }
    return found->second;
  }

  template <std::integral T>
  T Number(const char* name) const {
    const std::string& text = Text(name);
    T value = 0;
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, value);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) Wrong(name);
    return value;
  }

  // Calls f(entry) of each.
  template <class F>
  void ForEach(const char* name, F f) const {
    // No list here is deeper; in what is, a number would be wrong anyway.
    constexpr int kDeepest = 3;
    const json list = json::parse(
        Text(name),
        [&](int depth, json::parse_event_t, json&) {
          if (depth > kDeepest) Wrong(name);
          return true;
        },
        false);
    if (!list.is_array()) Wrong(name);
    for (const json& entry : list) f(entry);
  }

  template <class T>
  std::vector<T> List(const char* name) const {
    std::vector<T> values;
    ForEach(name, [&](const json& entry) { values.push_back(Value<T>(name, entry)); });
    return values;
  }

  // Exactly a T.
  template <class T>
  T Value(const char* name, const json& entry) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!entry.is_boolean()) Wrong(name);
    } else if constexpr (std::integral<T>) {
      if (!entry.is_number_integer() ||
          (entry.is_number_unsigned() && entry.get<std::uint64_t>() > INT64_MAX) ||
          !std::in_range<T>(entry.get<std::int64_t>())) {
        Wrong(name);
      }
    } else if (!entry.is_string()) {
      Wrong(name);
    }
    return entry.get<T>();
  }

  [[noreturn]] static void Wrong(const char* name) {
    throw std::invalid_argument(fmt::format("has something else in '{}' than belongs there", name));
  }

 private:
  const std::map<std::string, std::string>& metadata_;
};

std::vector<std::optional<std::int64_t>> Updates(const Fields& fields, const char* name) {
  std::vector<std::optional<std::int64_t>> updates;
  fields.ForEach(name, [&](const json& entry) {
    updates.push_back(entry.is_null() ? std::nullopt
                                      : std::optional(fields.Value<std::int64_t>(name, entry)));
  });
  return updates;
}

std::vector<BlockId> Ids(const Fields& fields, const json& list) {
  if (!list.is_array()) Fields::Wrong("allocation");
  std::vector<BlockId> ids;
  for (const json& id : list) ids.push_back(fields.Value<BlockId>("allocation", id));
  return ids;
}

NodeStanding Standing(const Fields& fields, const json& entry) {
  const auto field = [&entry](const char* name) -> const json& {
    if (!entry.is_object() || !entry.contains(name) || entry.size() != 4) Fields::Wrong("nodes");
    return entry[name];
  };
  return {.quarantine = fields.Value<std::string>("nodes", field("quarantine")),
          .reset = fields.Value<bool>("nodes", field("reset")),
          .lost = fields.Value<bool>("nodes", field("lost")),
          .steps_done = fields.Value<std::int64_t>("nodes", field("steps_done"))};
}

}  // namespace

Outline OutlineOf(const CoordinatorState& state) {
  Outline has{.moments = UpdatesOf(state.moments),
              .adam = UpdatesOf(state.updater.adam),
              .velocity = {},
              .residuals = {}};
  for (const auto& v : state.updater.velocity) has.velocity.push_back(v != nullptr);
  for (const auto& [id, residual] : state.updater.residuals) has.residuals.push_back(id);
  return has;
}

void CheckFields(const CoordinatorState& state, const Outline& has) {
  const BlockTable& table = *state.world.table;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  CheckRange("round", state.round, 0, std::numeric_limits<std::int32_t>::max());
  CheckRange<std::int64_t>("step", state.step, 0, kMost);
  CheckRange<std::int64_t>("up_bytes", state.up_bytes, 0, kMost);
  CheckRange<std::int64_t>("down_bytes", state.down_bytes, 0, kMost);
  CheckList("versions", state.world.blocks.size(), table.size(), false);
  for (const PublishedBlock& block : state.world.blocks) {
    CheckRange("versions", block.version, 0, state.round);
  }
  CheckList("delivered", state.delivered.size(), table.size(), true);
  for (const Version version : state.delivered) {
    CheckRange("delivered", version, 0, state.round);
  }
  CheckList("load", state.load.size(), table.experts(), true);
  CheckList("moments", has.moments.size(), table.size(), true);
  CheckList("velocity", has.velocity.size(), table.size(), true);
  CheckList("adam", has.adam.size(), table.size(), true);
  for (const auto& updates : has.moments) {
    CheckRange<std::int64_t>("moments", updates.value_or(0), 0, kMost);
  }
  for (const auto& updates : has.adam) {
    CheckRange<std::int64_t>("adam", updates.value_or(0), 0, kMost);
  }
  CheckIds("residuals", has.residuals, table);
  for (const auto& ids : state.allocation) CheckIds("allocation", ids, table);
  for (const NodeStanding& node : state.nodes) {
    CheckRange<std::int64_t>("nodes", node.steps_done, 0, kMost);
  }
  if (!state.nodes.empty() && state.nodes.size() != state.allocation.size()) {
    throw std::invalid_argument(fmt::format("has {} entries in 'nodes' and {} in 'allocation'",
                                            state.nodes.size(), state.allocation.size()));
  }
}

std::map<std::string, std::string> ToMetadata(const CoordinatorState& state, const Outline& has) {
  json versions = json::array(), standing = json::array();
  for (const PublishedBlock& block : state.world.blocks) versions.push_back(block.version);
  for (const auto& [quarantine, reset, lost, steps_done] : state.nodes) {
    standing.push_back(
        {{"quarantine", quarantine}, {"reset", reset}, {"lost", lost}, {"steps_done", steps_done}});
  }
  return {{"format", kFormat},
          {"scenario_hash", state.scenario_hash},
          {"run", std::to_string(state.run)},
          {"round", std::to_string(state.round)},
          {"step", std::to_string(state.step)},
          {"up_bytes", std::to_string(state.up_bytes)},
          {"down_bytes", std::to_string(state.down_bytes)},
          {"initial_hash", state.initial_hash},
          {"versions", Dump(versions)},
          {"moments", Dump(ToJson(has.moments))},
          {"velocity", Dump(has.velocity)},
          {"adam", Dump(ToJson(has.adam))},
          {"residuals", Dump(has.residuals)},
          {"allocation", Dump(state.allocation)},
          {"nodes", Dump(standing)},
          {"delivered", Dump(state.delivered)}};
}

Outline FromMetadata(const std::map<std::string, std::string>& metadata, CoordinatorState& state) {
  const Fields fields(metadata);
  if (fields.Text("format") != kFormat) {
    throw std::invalid_argument(
        fmt::format("is a '{}', this program reads '{}'", fields.Text("format"), kFormat));
  }
  state.scenario_hash = fields.Text("scenario_hash");
  state.run = fields.Number<std::uint64_t>("run");
  state.round = fields.Number<std::int32_t>("round");
  state.step = fields.Number<std::int64_t>("step");
  state.up_bytes = fields.Number<std::int64_t>("up_bytes");
  state.down_bytes = fields.Number<std::int64_t>("down_bytes");
  state.initial_hash = fields.Text("initial_hash");
  for (const Version version : fields.List<Version>("versions")) {
    state.world.blocks.push_back({version, nullptr});
  }
  state.delivered = fields.List<Version>("delivered");
  fields.ForEach("allocation",
                 [&](const json& ids) { state.allocation.push_back(Ids(fields, ids)); });
  fields.ForEach("nodes",
                 [&](const json& entry) { state.nodes.push_back(Standing(fields, entry)); });
  return {.moments = Updates(fields, "moments"),
          .adam = Updates(fields, "adam"),
          .velocity = fields.List<bool>("velocity"),
          .residuals = fields.List<BlockId>("residuals")};
}

}  // namespace spes::trainer
