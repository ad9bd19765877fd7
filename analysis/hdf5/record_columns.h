// The tables of the run log: which record goes where, column by column. Writer and reader both work
// from these lists, and the columns are named as the members are.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>

#include "analysis/records.h"

namespace spes::analysis {

// Raised when a column or attribute is removed or changes its meaning; a new one needs no raise.
inline constexpr int kSchemaVersion = 1;

template <class Row, class Value>
struct Column {
  const char* name;
  Value Row::*member;
  std::size_t width;  // bytes in the file
};

template <class Row, class Number>
constexpr Column<Row, Number> NumberColumn(const char* name, Number Row::*member) {
  return {name, member, sizeof(Number)};
}

// UTF-8 of a fixed width in bytes, padded with zeros: text of free length is not allowed in a file
// that is read while it is written. Longer text is cut and ends with "…".
template <class Row>
constexpr Column<Row, std::string> TextColumn(const char* name, std::string Row::*member,
                                              std::size_t width) {
  return {name, member, width};
}

inline constexpr std::size_t kNameWidth = 32;     // kinds, outcomes, names of domains
inline constexpr std::size_t kLinkWidth = 64;     // names of links, with two of sites
inline constexpr std::size_t kDetailWidth = 256;  // sentences

// Table<Record>: `name` of the dataset and `columns`, a tuple of Column.
template <class Record>
struct Table;

#define SPES_NUMBER(member) NumberColumn(#member, &Row::member)
#define SPES_TEXT(member, width) TextColumn(#member, &Row::member, width)

template <>
struct Table<StepRecord> {
  using Row = StepRecord;
  static constexpr const char* name = "steps";
  static constexpr auto columns =
      std::tuple(SPES_NUMBER(node), SPES_NUMBER(step), SPES_NUMBER(round), SPES_NUMBER(virtual_s),
                 SPES_NUMBER(wall_s), SPES_NUMBER(tokens), SPES_NUMBER(ce), SPES_NUMBER(z),
                 SPES_NUMBER(lb), SPES_NUMBER(rz), SPES_NUMBER(grad_norm), SPES_NUMBER(lr));
};

template <>
struct Table<RoundRecord> {
  using Row = RoundRecord;
  static constexpr const char* name = "rounds";
  static constexpr auto columns = std::tuple(
      SPES_NUMBER(round), SPES_NUMBER(first_step), SPES_NUMBER(last_step), SPES_NUMBER(start_s),
      SPES_NUMBER(end_s), SPES_NUMBER(members), SPES_NUMBER(arrived), SPES_NUMBER(late),
      SPES_NUMBER(rejected), SPES_NUMBER(up_bytes), SPES_NUMBER(down_bytes),
      SPES_NUMBER(up_shared_bytes), SPES_NUMBER(up_expert_bytes), SPES_NUMBER(up_moment_bytes),
      SPES_NUMBER(down_shared_bytes), SPES_NUMBER(down_expert_bytes),
      SPES_NUMBER(down_moment_bytes), SPES_NUMBER(alpha), SPES_NUMBER(mean_ce),
      SPES_NUMBER(update_norm), SPES_NUMBER(spread));
};

template <>
struct Table<NodeRoundRecord> {
  using Row = NodeRoundRecord;
  static constexpr const char* name = "node_rounds";
  static constexpr auto columns = std::tuple(
      SPES_NUMBER(round), SPES_NUMBER(node), SPES_NUMBER(start_s), SPES_NUMBER(compute_s),
      SPES_NUMBER(up_s), SPES_NUMBER(wait_s), SPES_NUMBER(down_s), SPES_NUMBER(up_bytes),
      SPES_NUMBER(down_bytes), SPES_NUMBER(arrived), SPES_NUMBER(late), SPES_NUMBER(drift));
};

template <>
struct Table<FlowRecord> {
  using Row = FlowRecord;
  static constexpr const char* name = "flows";
  static constexpr auto columns = std::tuple(
      SPES_NUMBER(flow), SPES_NUMBER(from), SPES_NUMBER(to), SPES_TEXT(message, kNameWidth),
      SPES_NUMBER(round), SPES_NUMBER(start_s), SPES_NUMBER(end_s), SPES_NUMBER(bytes),
      SPES_NUMBER(wire_bytes), SPES_NUMBER(retransmitted_bytes), SPES_NUMBER(retransmissions),
      SPES_NUMBER(drops), SPES_NUMBER(rtt_min_s), SPES_NUMBER(rtt_mean_s), SPES_NUMBER(goodput_bps),
      SPES_TEXT(outcome, kNameWidth));
};

template <>
struct Table<LinkRecord> {
  using Row = LinkRecord;
  static constexpr const char* name = "links";
  static constexpr auto columns =
      std::tuple(SPES_NUMBER(start_s), SPES_NUMBER(end_s), SPES_NUMBER(link),
                 SPES_TEXT(name, kLinkWidth), SPES_NUMBER(capacity_bytes), SPES_NUMBER(wire_bytes),
                 SPES_NUMBER(utilisation), SPES_NUMBER(dropped_packets));
};

template <>
struct Table<ExpertRecord> {
  using Row = ExpertRecord;
  static constexpr const char* name = "experts";
  static constexpr auto columns = std::tuple(
      SPES_NUMBER(round), SPES_NUMBER(layer), SPES_NUMBER(expert), SPES_NUMBER(owner),
      SPES_NUMBER(routed_share), SPES_NUMBER(update_norm), SPES_NUMBER(nearest_similarity),
      SPES_NUMBER(nearest), SPES_NUMBER(merged_similarity), SPES_NUMBER(staleness));
};

template <>
struct Table<RoutingRecord> {
  using Row = RoutingRecord;
  static constexpr const char* name = "routing";
  static constexpr auto columns =
      std::tuple(SPES_NUMBER(round), SPES_NUMBER(layer), SPES_NUMBER(entropy),
                 SPES_NUMBER(imbalance), SPES_NUMBER(mean_token_entropy));
};

template <>
struct Table<EvalRecord> {
  using Row = EvalRecord;
  static constexpr const char* name = "evals";
  static constexpr auto columns = std::tuple(
      SPES_NUMBER(round), SPES_NUMBER(step), SPES_NUMBER(virtual_s), SPES_TEXT(domain, kNameWidth),
      SPES_NUMBER(tokens), SPES_NUMBER(ce), SPES_NUMBER(perplexity), SPES_NUMBER(bytes_so_far));
};

template <>
struct Table<MemoryRecord> {
  using Row = MemoryRecord;
  static constexpr const char* name = "memory";
  static constexpr auto columns =
      std::tuple(SPES_NUMBER(node), SPES_TEXT(kind, kNameWidth), SPES_NUMBER(predicted_bytes),
                 SPES_NUMBER(measured_bytes));
};

template <>
struct Table<EventRecord> {
  using Row = EventRecord;
  static constexpr const char* name = "events";
  static constexpr auto columns =
      std::tuple(SPES_NUMBER(virtual_s), SPES_NUMBER(node), SPES_TEXT(kind, kNameWidth),
                 SPES_TEXT(detail, kDetailWidth));
};

#undef SPES_NUMBER
#undef SPES_TEXT

}  // namespace spes::analysis
