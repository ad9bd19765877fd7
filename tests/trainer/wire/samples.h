// Messages of every kind, with all that may be in them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/wire/message_codec.h"

namespace spes::trainer {

// Two layers with a shared block and two experts each. Of all kinds: parts with padding behind them
// and without, several runs, one element, none.
std::shared_ptr<const BlockTable> SampleTable(DType dtype);

struct Sample {
  std::string name;
  Message message;
};

// For SampleTable(dtype). Values hold NaN with a payload, infinities, −0 and subnormal numbers.
std::vector<Sample> SampleMessages(DType dtype);

// The whole payload in one piece.
std::string PayloadOf(const OutgoingMessage& message);

// Puts `payload` where it belongs and finishes.
Message Receive(IncomingMessage incoming, std::string_view payload);

// Head and payload, there and back.
Message RoundTrip(const OutgoingMessage& message, const std::shared_ptr<const BlockTable>& table);

// Everything equal, floating-point numbers and what buffers hold to the bit; a block with a code
// needs no values. `steps` without node and round.
bool Same(const Message& sent, const Message& received);

}  // namespace spes::trainer
