// A socket that says what a test wants it to say.
#pragma once

#include <optional>
#include <string>

#include "tests/trainer/runtime/tcp/frame_bytes.h"
#include "trainer/runtime/tcp/handshake.h"
#include "trainer/wire/frame.h"

namespace spes::trainer {

class RawSocket {
 public:
  // Connects to "127.0.0.1:PORT", from an address of this machine.
  explicit RawSocket(const std::string& address, const std::string& from = "127.0.0.1");
  ~RawSocket();
  RawSocket(const RawSocket&) = delete;
  RawSocket& operator=(const RawSocket&) = delete;

  void Say(const std::string& bytes);
  // What comes until the other side closes, or nothing more for `wait_s`.
  std::string Hear(double wait_s = 20);
  // True once the other side has closed, within `wait_s`.
  bool Closed(double wait_s = 20);

  // The next frame's payload, any type; nothing when the other side closes instead.
  std::optional<std::string> Frame(FrameType* type = nullptr);
  // A handshake as a node without TLS; the welcome, or nothing.
  std::optional<Welcome> ShakeHands(const Hello& hello, const std::string& token = "");

 private:
  int fd_;
};

// That lets node `node` in.
Hello GoodHello(NodeId node);

}  // namespace spes::trainer
