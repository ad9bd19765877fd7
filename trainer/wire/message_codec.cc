#include "trainer/wire/message_codec.h"

#include <bit>
#include <type_traits>
#include <utility>

#include "trainer/wire/block_runs.h"
#include "trainer/wire/head_reader.h"
#include "trainer/wire/head_writer.h"
#include "trainer/wire/message_fields.h"

namespace spes::trainer {

namespace {

static_assert(std::endian::native == std::endian::little, "heads are little-endian");
static_assert(kFrameHeaderBytes == kFrameBytes);
static_assert(std::variant_size_v<Message> == static_cast<std::size_t>(MessageKind::kLeave));

// A message's kind is its place among the alternatives, from 1.
template <std::size_t... kIndex>
Message MessageOf(std::size_t index, std::index_sequence<kIndex...>) {
  Message message;
  ((index == kIndex ? static_cast<void>(message.emplace<kIndex>()) : void()), ...);
  return message;
}

Message ReadFields(HeadReader& in) {
  std::uint8_t kind = 0;
  in.Number(kind);
  in.Require(kind >= 1 && kind <= std::variant_size_v<Message>, "it is of an unknown kind");
  Message message = MessageOf(kind - 1u, std::make_index_sequence<std::variant_size_v<Message>>());
  std::visit([&](auto& m) { Fields(in, m); }, message);
  in.ExpectEnd();
  return message;
}

// Gives blocks their memory.
class Placement {
 public:
  Placement(const BlockTable& table, const Allocate& allocate,
            std::vector<std::span<std::byte>>& payload)
      : table_(table), allocate_(allocate), payload_(payload) {}

  template <class Block>
  void Place(Block& block, const BlockContent& content) {
    if (content.code_bytes) {
      const auto code = std::make_shared<Buffer>(Allocated(allocate_, *content.code_bytes));
      if (code->bytes() > 0) payload_.push_back(code->as<std::byte>());
      block.code = MakeCode(code);
    } else {
      block.data = Values(block.id);
    }
    if (!content.updates) return;
    SharedBuffer first = Values(block.id);
    SharedBuffer second = Values(block.id);
    block.moments = std::make_shared<BlockMoments>(
        BlockMoments{std::move(first), std::move(second), *content.updates});
  }

 private:
  SharedBuffer Values(BlockId id) {
    const std::int64_t bytes = table_[id].buffer_elements * ElementBytes(table_.dtype());
    const auto buffer = std::make_shared<Buffer>(Allocated(allocate_, bytes));
    ForEachRun(table_[id], table_.dtype(), [&](std::int64_t offset, std::int64_t run) {
      payload_.emplace_back(buffer->data() + offset, static_cast<std::size_t>(run));
    });
    return buffer;
  }

  const BlockTable& table_;
  const Allocate& allocate_;
  std::vector<std::span<std::byte>>& payload_;
};

}  // namespace

OutgoingMessage EncodeMessage(Message message, const BlockTable& table) {
  HeadWriter out(table);
  out.Number(static_cast<std::uint8_t>(message.index() + 1));
  std::visit([&](auto& m) { Fields(out, m); }, message);
  return {std::move(message), std::move(out.head()), std::move(out.payload()), out.payload_bytes()};
}

struct IncomingMessage::Parts {
  Message message;
  std::vector<std::span<std::byte>> payload;
  std::int64_t payload_bytes = 0;
};

IncomingMessage::IncomingMessage(std::string_view head, std::shared_ptr<const BlockTable> table,
                                 const WireLimits& limits, const Allocate& allocate)
    : parts_(std::make_unique<Parts>()) {
  HeadReader in(head, *table, limits);
  parts_->message = ReadFields(in);
  parts_->payload_bytes = in.payload_bytes();
  Placement placement(*table, allocate, parts_->payload);
  std::visit(
      [&](auto& m) {
        if constexpr (requires { m.blocks; }) {
          for (std::size_t i = 0; i < m.blocks.size(); ++i) {
            placement.Place(m.blocks[i], in.contents()[i]);
          }
        }
      },
      parts_->message);
}

IncomingMessage::~IncomingMessage() = default;
IncomingMessage::IncomingMessage(IncomingMessage&&) noexcept = default;
IncomingMessage& IncomingMessage::operator=(IncomingMessage&&) noexcept = default;

std::int64_t IncomingMessage::payload_bytes() const { return parts_->payload_bytes; }

const std::vector<std::span<std::byte>>& IncomingMessage::payload() const {
  return parts_->payload;
}

Message IncomingMessage::Finish() && { return std::move(parts_->message); }

}  // namespace spes::trainer
