// What the descriptions of sections are written with.
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/describe.h"
#include "scenarios/scenario.h"

namespace spes::scenarios {

inline constexpr Limits kPositive = {.min = 0, .above_min = true};
inline constexpr Limits kNotNegative = {.min = 0};
inline constexpr Limits kShare = {.min = 0, .max = 1};                           // [0, 1]
inline constexpr Limits kProbability = {.min = 0, .max = 1, .below_max = true};  // [0, 1)
inline constexpr Limits kInside = {.min = 0, .max = 1, .above_min = true, .below_max = true};

inline constexpr Limits kDuration = {.min = 0, .max = 100 * 86400.0};  // up to 100 days
inline constexpr Limits kSomeTime = {.min = 0, .max = 100 * 86400.0, .above_min = true};
inline constexpr Limits kRate = {.min = 0, .max = 1e15, .above_min = true};
inline constexpr double kMaxNodes = 100'000;

// Upper limits keep products of sizes within 64 bits; nothing real is near them.
constexpr Limits AtLeast(double min, double max = std::numeric_limits<double>::infinity()) {
  return {.min = min, .max = max};
}

template <class T>
using Names = std::vector<std::pair<std::string_view, T>>;

// One of several names, each for a value of `where`.
template <class T>
void OneOf(Visitor& v, const Field& field, T& where, Names<T> names) {
  Choice choice;
  for (const auto& [name, value] : names) choice.names.push_back(name);
  choice.get = [&where, names] {
    std::size_t i = 0;
    while (i + 1 < names.size() && names[i].second != where) ++i;
    return i;
  };
  choice.set = [&where, names](std::size_t i) { where = names[i].second; };
  v.OnValue(field, choice);
}

template <class T>
void Part(Visitor& v, std::string_view key, std::string_view doc, T& part, T initial = {}) {
  v.OnSection({key, doc}, {.visit = [&part](Visitor& inner) { Describe(part, inner); },
                           .reset = [&part, initial] { part = initial; }});
}

template <class T>
void Many(Visitor& v, std::string_view key, std::string_view doc, std::vector<T>& items,
          std::string_view shorthand = {}) {
  v.OnList({key, doc},
           {.size = [&items] { return items.size(); },
            .resize = [&items](std::size_t n) { items.resize(n); },
            .visit = [&items](std::size_t i, Visitor& inner) { Describe(items[i], inner); },
            .reset = [&items](std::size_t i) { items[i] = T{}; },
            .shorthand = shorthand});
}

// In describe_sync.cc.
void Describe(SyncSection& sync, Visitor& v);

// In describe_transport.cc.
void Describe(TransportSection& transport, Visitor& v);

// In describe_faults.cc.
void Describe(FaultsSection& faults, Visitor& v);

// In describe_network.cc.
void Describe(LinkSection& link, Visitor& v);
void Describe(NetworkSection& network, Visitor& v);

}  // namespace spes::scenarios
