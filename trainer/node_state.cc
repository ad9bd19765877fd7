#include "trainer/node_state.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdexcept>

namespace spes::trainer {

namespace {

constexpr std::string_view kMark = "spes-node-state-1\n";

[[noreturn]] void Fail(const char* what) {
  throw std::invalid_argument(std::string("saved state of a node: ") + what);
}

}  // namespace

StateWriter::StateWriter() : text_(kMark) {}

void StateWriter::Bytes(std::span<const std::byte> bytes) {
  Number<std::uint64_t>(bytes.size());
  text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void StateWriter::Bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  Number<std::uint64_t>(bytes.size());
  Flush();
  bytes_.Add(bytes, std::move(owner));
}

void StateWriter::Bytes(const StateBytes& bytes) {
  Number<std::uint64_t>(bytes.size());
  Flush();
  bytes_.Add(bytes);
}

void StateWriter::Flush() { bytes_.Add(std::exchange(text_, {})); }

StateBytes StateWriter::Finish() {
  Flush();
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  bytes_.ForEach([&state](std::span<const std::byte> piece) {
    XXH3_64bits_update(&state, piece.data(), piece.size());
  });
  Number<std::uint64_t>(XXH3_64bits_digest(&state));
  Flush();
  return std::move(bytes_);
}

StateReader::StateReader(std::string_view text) : rest_(text) {
  if (text.size() < kMark.size() + sizeof(std::uint64_t) || text.substr(0, kMark.size()) != kMark) {
    Fail("it does not begin like one");
  }
  std::uint64_t checksum;
  std::memcpy(&checksum, text.data() + text.size() - sizeof(checksum), sizeof(checksum));
  rest_.remove_suffix(sizeof(checksum));
  if (XXH3_64bits(rest_.data(), rest_.size()) != checksum) Fail("its checksum is wrong");
  rest_.remove_prefix(kMark.size());
}

std::string_view StateReader::Take(std::uint64_t bytes) {
  if (bytes > rest_.size()) Fail("it is cut short");
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::string_view StateReader::Bytes() { return Take(Number<std::uint64_t>()); }

void StateReader::ExpectEnd() const {
  if (!rest_.empty()) Fail("something follows its end");
}

SavedNode ParseNode(std::string_view text, const BlockTable& table,
                    const std::vector<BlockId>& trains) {
  StateReader in(text);
  const auto require = [](bool holds, const char* what) {
    if (!holds) Fail(what);
  };
  require(in.Number<std::int32_t>() == static_cast<std::int32_t>(table.dtype()),
          "of another element type");
  require(in.Number<std::uint64_t>() == trains.size(), "it trains other blocks");
  const auto next = [&](BlockId id) {
    const std::string_view bytes = in.Bytes();
    require(static_cast<std::int64_t>(bytes.size()) ==
                table[id].buffer_elements * ElementBytes(table.dtype()),
            "a block has another size");
    return bytes;
  };
  const auto next_moments = [&](BlockId id) {
    const auto updates = in.Number<std::int64_t>();
    const auto first = next(id);
    return SavedMoments{updates, first, next(id)};
  };
  SavedNode saved;
  for (const BlockId id : trains) {
    require(in.Number<BlockId>() == id, "it trains other blocks");
    const auto values = next(id);
    saved.trained.emplace_back(values, next_moments(id));
  }
  for (auto left = in.Number<std::uint64_t>(); left > 0; --left) {
    const auto id = in.Number<BlockId>();
    require(id >= 0 && id < table.size(), "it has trained blocks of another model");
    saved.aside.emplace(id, next_moments(id));
  }
  saved.position = in.Bytes();
  in.ExpectEnd();
  return saved;
}

}  // namespace spes::trainer
