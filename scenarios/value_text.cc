#include "scenarios/value_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "scenarios/nearest.h"
#include "scenarios/yaml_tree.h"

namespace spes::scenarios {

namespace {

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

constexpr std::string_view kTimeUnit = "ms";

// The whole text as a finite number.
std::optional<double> Number(const std::string& text) {
  double x = 0;
  const char* const end = text.data() + text.size();
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [rest, error] = std::from_chars(begin, end, x);
  if (error != std::errc{} || rest != end || !std::isfinite(x)) return std::nullopt;
  return x;
}

// Digits, or a number like 1e6 that is whole and small enough to be exact.
template <class Int>
std::optional<Int> Whole(const std::string& text) {
  Int i = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, i);
  if (error == std::errc{} && rest == end) return i;
  const std::optional<double> x = Number(text);
  constexpr double kExact = 0x1p53;
  if (!x || std::floor(*x) != *x || std::abs(*x) > kExact) return std::nullopt;
  if (*x < static_cast<double>(std::numeric_limits<Int>::min()) ||
      *x > static_cast<double>(std::numeric_limits<Int>::max())) {
    return std::nullopt;
  }
  return static_cast<Int>(*x);
}

[[noreturn]] void Refuse(const Field& field, const Value& value, const std::string& text) {
  throw std::invalid_argument(fmt::format("{} is not {}", Quoted(text), Expected(field, value)));
}

}  // namespace

std::string_view ExampleUnit(const Field& field, const Value& value) {
  if (field.unit == Unit::kBitRate) return "Mbps";
  if (field.unit == Unit::kByteSize) return "MiB";
  const bool time = std::holds_alternative<sim::Time*>(value) ||
                    std::holds_alternative<std::optional<sim::Time>*>(value);
  return time ? kTimeUnit : "";
}

std::string Expected(const Field& field, const Value& value) {
  const bool time = ExampleUnit(field, value) == kTimeUnit;
  const std::string range = field.limits.Text([&](double x) {
    if (time) return sim::FormatDuration(sim::FromSeconds(x));
    if (field.unit == Unit::kBitRate) return sim::FormatBitRate(x);
    if (field.unit == Unit::kByteSize) return sim::FormatByteSize(static_cast<std::int64_t>(x));
    return fmt::format("{}", x);
  });
  return std::visit(
      Overloaded{[](bool*) -> std::string { return "true or false"; },
                 [&](double*) {
                   return field.unit == Unit::kBitRate ? "a rate" + range + ", such as '100 Mbps'"
                                                       : "a number" + range;
                 },
                 [](std::string*) -> std::string { return "a text"; },
                 [&](sim::Time*) { return "a duration" + range + ", such as '40 ms'"; },
                 [&](std::optional<double>*) {
                   return fmt::format("'{}' or a rate{}, such as '100 Mbps'", kUnset, range);
                 },
                 [&](std::optional<sim::Time>*) {
                   return fmt::format("'{}' or a duration{}, such as '40 ms'", kUnset, range);
                 },
                 [](std::vector<std::string>*) -> std::string { return "a list of texts"; },
                 [](const Choice& choice) {
                   std::string names;
                   for (std::size_t i = 0; i < choice.names.size(); ++i) {
                     names += i == 0 ? "" : i + 1 == choice.names.size() ? " or " : ", ";
                     names += choice.names[i];
                   }
                   return names;
                 },
                 [&](auto* whole) {
                   using Int = std::remove_pointer_t<decltype(whole)>;
                   if (field.unit == Unit::kByteSize)
                     return "a size" + range + ", such as '64 MiB'";
                   const bool natural = std::is_unsigned_v<Int> && range.empty();
                   return "a whole number" + (natural ? " of at least 0" : range);
                 }},
      value);
}

void SetFromText(const Field& field, const Value& value, const std::string& text) {
  if (const std::string_view unit = ExampleUnit(field, value); !unit.empty()) {
    const std::optional<double> bare = Number(text);
    if (bare && *bare != 0) {
      throw std::invalid_argument(
          fmt::format("{} has no unit; write for example '{} {}'", Quoted(text), text, unit));
    }
  }
  // Sets `where` when the text could be read and is within the limits.
  const auto set = [&](auto& where, const auto& parsed, double size) {
    if (!parsed || !field.limits.Allow(size)) Refuse(field, value, text);
    where = *parsed;
  };
  const auto seconds = [](const std::optional<sim::Time>& t) { return t ? sim::ToSeconds(*t) : 0; };
  std::visit(Overloaded{[&](bool* b) {
                          if (text != "true" && text != "false") Refuse(field, value, text);
                          *b = text == "true";
                        },
                        [&](double* x) {
                          const auto parsed =
                              field.unit == Unit::kBitRate ? sim::ParseBitRate(text) : Number(text);
                          set(*x, parsed, parsed.value_or(0));
                        },
                        [&](std::string* s) { *s = text; },
                        [&](sim::Time* t) {
                          const auto parsed = sim::ParseDuration(text);
                          set(*t, parsed, seconds(parsed));
                        },
                        [&](std::optional<double>* x) {
                          if (text == kUnset) {
                            x->reset();
                            return;
                          }
                          const auto parsed = sim::ParseBitRate(text);
                          set(*x, parsed, parsed.value_or(0));
                        },
                        [&](std::optional<sim::Time>* t) {
                          if (text == kUnset) {
                            t->reset();
                            return;
                          }
                          const auto parsed = sim::ParseDuration(text);
                          set(*t, parsed, seconds(parsed));
                        },
                        [&](std::vector<std::string>* list) { *list = {text}; },
                        [&](const Choice& choice) {
                          for (std::size_t i = 0; i < choice.names.size(); ++i) {
                            if (choice.names[i] == text) return choice.set(i);
                          }
                          std::vector<std::string> names(choice.names.begin(), choice.names.end());
                          const std::string near = Suggestion(text, names);
                          throw std::invalid_argument(
                              fmt::format("{} is not {}{}", Quoted(text), Expected(field, value),
                                          near.starts_with("; did") ? near : ""));
                        },
                        [&](auto* whole) {
                          using Int = std::remove_pointer_t<decltype(whole)>;
                          std::optional<Int> parsed;
                          if constexpr (std::is_same_v<Int, std::int64_t>) {
                            if (field.unit == Unit::kByteSize) parsed = sim::ParseByteSize(text);
                          }
                          if (field.unit != Unit::kByteSize) parsed = Whole<Int>(text);
                          set(*whole, parsed, static_cast<double>(parsed.value_or(0)));
                        }},
             value);
}

std::string ToText(const Field& field, const Value& value) {
  return std::visit(
      Overloaded{
          [](bool* b) -> std::string { return *b ? "true" : "false"; },
          [&](double* x) {
            return field.unit == Unit::kBitRate ? sim::FormatBitRate(*x) : fmt::format("{}", *x);
          },
          [](std::string* s) { return *s; }, [](sim::Time* t) { return sim::FormatDuration(*t); },
          [](std::optional<double>* x) {
            return *x ? sim::FormatBitRate(**x) : std::string(kUnset);
          },
          [](std::optional<sim::Time>* t) {
            return *t ? sim::FormatDuration(**t) : std::string(kUnset);
          },
          [](std::vector<std::string>*) -> std::string {
            throw std::logic_error("a list has no single text");
          },
          [](const Choice& choice) { return std::string(choice.names[choice.get()]); },
          [&](auto* whole) {
            return field.unit == Unit::kByteSize
                       ? sim::FormatByteSize(static_cast<std::int64_t>(*whole))
                       : fmt::format("{}", *whole);
          }},
      value);
}

}  // namespace spes::scenarios
