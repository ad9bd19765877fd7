#include "trainer/sync/shared_code.h"

#include <span>
#include <utility>

namespace spes::trainer {

namespace {

template <class Owner>
struct Kept {
  Owner owner;
  std::string_view text;
};

// `view(owner)` of where it lies for good.
template <class Owner, class View>
SharedCode Keep(Owner owner, View view) {
  const auto kept = std::make_shared<Kept<Owner>>();
  kept->owner = std::move(owner);
  kept->text = view(kept->owner);
  return {kept, &kept->text};
}

}  // namespace

SharedCode MakeCode(std::string text) {
  return Keep(std::move(text), [](const std::string& owner) { return std::string_view(owner); });
}

SharedCode MakeCode(SharedBuffer bytes) {
  return Keep(std::move(bytes), [](const SharedBuffer& owner) {
    const std::span<const char> text = owner->as<char>();
    return std::string_view(text.data(), text.size());
  });
}

}  // namespace spes::trainer
