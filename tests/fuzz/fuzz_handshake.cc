// What a stranger says to a coordinator, and to a node that dials it: before it is let in, and
// afterwards. The first byte of the input says who is met and how; see Kind. Then come either the
// bytes as they cross the connection, or, where they are sealed, steps: a byte that says which, a
// number, the length of what follows in two bytes, and that. A step whose byte is a type of frames
// is a frame with the right header, see HonestSide::HearFrame.
#include <algorithm>
#include <string>
#include <string_view>

#include "tests/fuzz/handshake_ends.h"
#include "tests/fuzz/harness.h"

namespace spes::fuzz {

namespace {

enum Kind : unsigned {
  kNode = 1,      // the stranger is dialled; otherwise it dials
  kToken = 2,     // is asked for
  kSealed = 4,    // steps follow; otherwise bytes
  kSilent = 8,    // in the end; otherwise it closes
  kPieces = 16,   // reads and writes are of 1 byte, or with
  kPieces7 = 32,  // this too of 7
};

enum Step : unsigned {
  kBytes = 0,  // as they are
  // To the last type of frames.
  kOpen = 0xff,    // another connection
  kSwitch = 0xfe,  // to connection `number`
  kWait = 0xfd,    // `number` s
  kSend = 0xfc,    // the honest side sends a message of kind `number`
};

std::size_t MostAtOnce(unsigned kind) {
  if ((kind & kPieces) == 0) return ~std::size_t{0};
  return (kind & kPieces7) == 0 ? 1 : 7;
}

void Take(HonestSide& side, std::string_view steps) {
  std::size_t at = 0;
  while (steps.size() >= 4) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(steps[i]); };
    const unsigned step = byte(0), number = byte(1);
    const std::size_t length = std::min<std::size_t>(byte(2) + 256u * byte(3), steps.size() - 4);
    const std::string_view content = steps.substr(4, length);
    steps.remove_prefix(4 + length);
    switch (step) {
      case kBytes:
        side.Hear(at, content);
        break;
      case kOpen:
        side.Open();
        at = side.talks() - 1;
        break;
      case kSwitch:
        at = number % side.talks();
        break;
      case kWait:
        side.Tick(number);
        break;
      case kSend:
        side.Send(number);
        break;
      default:
        side.HearFrame(at, static_cast<trainer::FrameType>(step), number, std::string(content));
    }
  }
}

}  // namespace

bool FuzzHandshake(std::span<const std::byte> input) {
  if (input.empty()) return false;
  const auto kind = static_cast<unsigned>(input[0]);
  const std::string_view rest(reinterpret_cast<const char*>(input.data()) + 1, input.size() - 1);
  const std::string token = (kind & kToken) != 0 ? "a secret" : "";
  const auto side = (kind & kNode) != 0 ? MakeNode(token, MostAtOnce(kind))
                                        : MakeCoordinator(token, MostAtOnce(kind));
  side->Open();
  if ((kind & kSealed) != 0) {
    Take(*side, rest);
  } else {
    side->Hear(0, rest);
  }
  return side->Finish((kind & kSilent) != 0);
}

}  // namespace spes::fuzz
