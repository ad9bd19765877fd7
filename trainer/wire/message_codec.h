// Messages as bytes. A message is a head (its kind, its fields, a header for each block) and a
// payload, which is sent from and read into where it lies: for each block its values, part after
// part without padding, or its code, then its first and second moments. Sizes are those of
// trainer/protocol/wire_size.h: with a frame header, head and payload have WireBytes(message)
// bytes.
//
// Numbers are little-endian; texts and lists have a 4-byte count in front; what may be absent has a
// flag. The fields' order is that of message_fields.h. The header of a block:
//
//   offset  bytes
//        0      4  id
//        4      4  version; 0 in an offer
//        8      8  checksum; 0 but in an offer
//       16      7  length of its values or code
//       23      1  1: a code, not values; 2: moments follow (or both: 3)
//       24      8  updates that the moments have seen, where there are any
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/protocol/messages.h"
#include "trainer/wire/frame.h"

namespace spes::trainer {

// What a head starts with.
enum class MessageKind : std::uint8_t {
  kJoin = 1,
  kAdmit,
  kOffer,
  kReject,
  kUpdate,
  kApplied,
  kLeave
};

// A message ready to be sent. Keeps the buffers that the payload points into.
struct OutgoingMessage {
  Message message;
  std::string head;
  std::vector<std::span<const std::byte>> payload;  // one after the other; padding left out
  std::int64_t payload_bytes = 0;
};

// A block with a code sends the code, any other its values. Throws std::invalid_argument, one line,
// on what no receiver would take: a block that is not of `table` or whose buffers are absent or of
// another size, rounds, steps, versions or counts below 0, routing of more layers or experts than
// `table` has.
OutgoingMessage EncodeMessage(Message message, const BlockTable& table);

// What a receiver accepts, whatever a head says.
struct WireLimits {
  std::int64_t head_bytes = 64 << 20;
  std::int64_t text_bytes = 1 << 10;      // of one text: a line for people, or a hash
  std::int64_t list_length = 16'777'216;  // of one list; never more than the head has bytes for
  // The largest code of a block, by its id; empty: its values and 4096 bytes.
  std::function<std::int64_t(BlockId)> code_bytes = {};
};

// A message on its way in. First the head, which is checked against the table in full before
// anything is allocated; then the payload is read into `payload()`; then the message.
class IncomingMessage {
 public:
  // Throws WireError on anything that EncodeMessage could not have written for this table: unknown
  // kinds, ids that are not of the table or come twice in one list, lengths that are not the
  // block's, counts below 0, bytes left over; and on texts, lists or codes above the limits. Blocks
  // need not be ascending. What is not printable in texts is replaced; see printable.h. Memory for
  // payload is asked for once all of the head has been found good, `payload_bytes()` and padding.
  IncomingMessage(std::string_view head, std::shared_ptr<const BlockTable> table,
                  const WireLimits& limits, const Allocate& allocate = {});
  ~IncomingMessage();
  IncomingMessage(IncomingMessage&&) noexcept;
  IncomingMessage& operator=(IncomingMessage&&) noexcept;

  std::int64_t payload_bytes() const;
  // Where the payload belongs, one piece after the other.
  const std::vector<std::span<std::byte>>& payload() const;

  // Once all of the payload is there. The blocks that came as codes have `code` and no `data`:
  // whoever has their base decodes them (trainer/sync/codec.h). Steps' `node` and `round` are 0:
  // the receiver knows them.
  Message Finish() &&;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace spes::trainer
