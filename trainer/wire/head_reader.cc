#include "trainer/wire/head_reader.h"

#include <limits>

#include "trainer/wire/message_fields.h"
#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {
constexpr std::int64_t kCodeSlack = 4096;
}

HeadReader::HeadReader(std::string_view head, const BlockTable& table, const WireLimits& limits)
    : rest_(head), table_(table), limits_(limits), seen_(blocks()) {
  Require(head.size() <= static_cast<std::uint64_t>(limits.head_bytes), "its head is too long");
}

void HeadReader::Fail(const char* what) const {
  throw WireError(std::string("a message that cannot be read: ") + what);
}

std::string_view HeadReader::Take(std::size_t bytes) {
  Require(bytes <= rest_.size(), "it is cut short");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::size_t HeadReader::Length(std::size_t most, std::size_t item_bytes) {
  std::uint32_t length = 0;
  Number(length);
  Require(length <= most, "a list is too long");
  Require(length <= rest_.size() / item_bytes, "a list is longer than what is there");
  return length;
}

void HeadReader::Flag(bool& value) {
  std::uint8_t byte = 0;
  Number(byte);
  Require(byte <= 1, "a flag is neither 0 nor 1");
  value = byte == 1;
}

void HeadReader::Text(std::string& text) {
  text = Printable(Take(Length(static_cast<std::size_t>(limits_.text_bytes), 1)));
}

void HeadReader::Id(BlockId& id) {
  Number(id);
  Require(id >= 0 && id < table_.size(), "a block that the model lacks");
  Require(seen_[static_cast<std::size_t>(id)] != list_, "a block comes twice");
  seen_[static_cast<std::size_t>(id)] = list_;
}

void HeadReader::ReadContent(BlockId id) {
  std::uint64_t word = 0;
  Number(word);
  const std::uint64_t flags = word >> kLengthBits;
  const auto length = static_cast<std::int64_t>(word & ((std::uint64_t{1} << kLengthBits) - 1));
  const std::int64_t values = table_.Bytes(id);
  Require(flags <= (kHasCode | kHasMoments), "a block's flags are unknown");
  BlockContent content;
  if (flags & kHasCode) {
    const std::int64_t most = limits_.code_bytes ? limits_.code_bytes(id) : values + kCodeSlack;
    Require(length <= most, "a block's code is too long");
    content.code_bytes = length;
  } else {
    Require(length == values, "a block has another length than in the model");
  }
  AddPayload(length);
  if (flags & kHasMoments) {
    Count(content.updates.emplace());
    AddPayload(values);
    AddPayload(values);
  }
  contents_.push_back(content);
}

void HeadReader::AddPayload(std::int64_t bytes) {
  Require(bytes <= std::numeric_limits<std::int64_t>::max() - payload_bytes_, "it is too long");
  payload_bytes_ += bytes;
}

}  // namespace spes::trainer
