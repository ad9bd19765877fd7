#include "tests/trainer/wire/head_check.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/wire/samples.h"
#include "trainer/protocol/wire_size.h"

namespace spes::trainer {

namespace {

void Require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

// At most the values of all blocks, or their codes, and their moments.
std::int64_t MostMemory(const BlockTable& table, const WireLimits& limits) {
  std::int64_t bytes = 0;
  for (BlockId id = 0; id < table.size(); ++id) {
    const std::int64_t values = table[id].buffer_elements * ElementBytes(table.dtype());
    const std::int64_t code = limits.code_bytes ? limits.code_bytes(id) : values + 4096;
    bytes += std::max(values, code) + 2 * values;
  }
  return bytes;
}

std::string ArbitraryBytes(std::int64_t size) {
  std::string bytes(static_cast<std::size_t>(size), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 167 + 255);
  return bytes;
}

}  // namespace

bool TakesHead(std::string_view head, const std::shared_ptr<const BlockTable>& table,
               const WireLimits& limits) {
  // On the heap without room behind it, so that a byte read too far is noticed.
  const std::vector<char> bytes(head.begin(), head.end());
  std::int64_t asked = 0;
  const auto allocate = [&](std::int64_t size) {
    asked += size;
    return Buffer(size);
  };
  try {
    IncomingMessage in({bytes.data(), bytes.size()}, table, limits, allocate);
    Require(asked <= MostMemory(*table, limits), "more memory than the blocks have");
    const std::string payload = ArbitraryBytes(in.payload_bytes());
    const OutgoingMessage out = EncodeMessage(Receive(std::move(in), payload), *table);
    Require(out.head.size() == head.size(), "the head has another length when sent again");
    Require(
        out.payload_bytes == static_cast<std::int64_t>(payload.size()) && PayloadOf(out) == payload,
        "the payload is another when sent again");
    Require(static_cast<std::int64_t>(kFrameHeaderBytes + head.size() + payload.size()) ==
                WireBytes(out.message, *table),
            "another size than is charged");
    const OutgoingMessage again = EncodeMessage(RoundTrip(out, table), *table);
    Require(again.head == out.head && PayloadOf(again) == payload,
            "what was sent again is not read as the same");
    return true;
  } catch (const WireError& error) {
    Require(asked == 0, "memory for a head that is refused");
    Require(std::string_view(error.what()).find('\n') == std::string_view::npos,
            "a reason of more than one line");
    return false;
  }
}

}  // namespace spes::trainer
