#include "trainer/protocol/messages.h"

#include <array>

namespace spes::trainer {

namespace {
template <class... F>
struct Overload : F... {
  using F::operator()...;
};
template <class... F>
Overload(F...) -> Overload<F...>;
}  // namespace

std::string_view Name(RejectReason reason) {
  switch (reason) {
    case RejectReason::kScenario:
      return "scenario";
    case RejectReason::kCorrupt:
      return "corrupt";
    case RejectReason::kNotFinite:
      return "not finite";
    case RejectReason::kUnexpected:
      return "unexpected";
    case RejectReason::kNotMember:
      return "not a member";
    case RejectReason::kOtherRun:
      return "another run";
    case RejectReason::kDistrusted:
      return "distrusted";
  }
  return "unexpected";
}

std::string_view Name(const Message& message) {
  static constexpr std::array<std::string_view, std::variant_size_v<Message>> names = {
      "join", "admit", "offer", "reject", "update", "applied", "leave"};
  return names[message.index()];
}

std::int32_t RoundOf(const Message& message) {
  return std::visit(
      Overload{[](const Join&) { return 0; }, [](const Leave&) { return 0; },
               [](const Admit& m) { return m.order.span.round; },
               [](const Offer& m) { return m.span.round; }, [](const Reject& m) { return m.round; },
               [](const Update& m) { return m.version; },
               [](const Applied& m) { return m.version; }},
      message);
}

bool IsBulk(const Message& message) {
  return std::holds_alternative<Admit>(message) || std::holds_alternative<Offer>(message) ||
         std::holds_alternative<Update>(message);
}

}  // namespace spes::trainer
