// How a connection is let in. All within TLS, where that is on.
//
//   node                          coordinator
//   Hello{who, what for}    ───►
//                           ◄───  Challenge{a fresh random number}
//   Proof{of the token}     ───►
//                           ◄───  Welcome{session, proof of the token} or Refuse{why}
//
// The proofs are HMAC-SHA256 under the token, of a label of each direction's own, everything that
// the node and the coordinator have said, and, within TLS, a value that only the two ends of this
// very TLS connection can have (RFC 9266's tls-exporter): nothing of the token crosses the wire,
// nothing can be used again, and nobody in between can pass it on. Who fails it is told "not let
// in", and nothing else of the run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "trainer/protocol/messages.h"
#include "trainer/runtime/tcp/secrets.h"

namespace spes::trainer {

// Random; who knows it belongs to the session.
using SessionId = std::array<std::byte, 16>;
inline constexpr SessionId kNoSession{};

enum class ConnectionRole : std::uint8_t { kControl = 1, kBeat, kBulk };
std::string_view Name(ConnectionRole role);

inline constexpr int kMaxStreams = 64;
inline constexpr std::int64_t kMinChunkBytes = 1 << 10, kMaxChunkBytes = 64 << 20;
inline constexpr std::uint32_t kMaxBeatMs = 3'600'000;
inline constexpr NodeId kAnyNode = -1;

struct Hello {
  ConnectionRole role = ConnectionRole::kControl;
  std::uint16_t index = 0;         // of a connection for parameters
  SessionId session = kNoSession;  // that it belongs to; none: a new one is wanted
  NodeId node = kAnyNode;          // that is wanted
  bool or_any = false;             // if that is not to be had, another one
  std::int64_t clock_us = 0;       // wall clock, since 1970
  std::uint32_t chunk_bytes = 0;   // of what the node sends
  std::uint32_t beat_ms = 0;       // how often the node gives a sign of life
  std::string scenario_hash;
  Nonce nonce{};
  bool operator==(const Hello&) const = default;
};

struct Challenge {
  Nonce nonce{};
  bool operator==(const Challenge&) const = default;
};

struct Proof {
  Digest digest{};
  bool operator==(const Proof&) const = default;
};

// 31 years, in ns: clocks go on from it.
inline constexpr std::int64_t kMaxNow = 1'000'000'000'000'000'000;

struct Welcome {
  SessionId session{};
  NodeId node = 0;
  std::int64_t now_ns = 0;        // the run's clock, kMaxNow at most
  std::uint32_t chunk_bytes = 0;  // of what the coordinator sends
  std::uint32_t beat_ms = 0;
  Digest digest{};
  bool operator==(const Welcome&) const = default;
};

enum class RefuseCode : std::uint8_t {
  kNotLetIn = 1,    // no proof; says nothing else
  kScenario,        // the text is the coordinator's scenario; the node answers with the difference
  kClocks,          // too far apart
  kTaken,           // the node is somebody else's
  kNoSuchNode,      // or none is free
  kBanned,          // with the reason
  kUnknownSession,  // begin anew
  kTooMany,         // connections, or for now
};

struct Refuse {
  RefuseCode code = RefuseCode::kNotLetIn;
  bool permanent = true;  // trying again is of no use
  std::string text;       // one line, but for kScenario
  bool operator==(const Refuse&) const = default;
};

// Payloads of the frames. Decoding throws WireError on anything else than what encoding writes.
std::string Encode(const Hello& m);
std::string Encode(const Challenge& m);
std::string Encode(const Proof& m);
std::string Encode(const Welcome& m);
std::string Encode(const Refuse& m);
Hello DecodeHello(std::string_view payload);
Challenge DecodeChallenge(std::string_view payload);
Proof DecodeProof(std::string_view payload);
Welcome DecodeWelcome(std::string_view payload);
Refuse DecodeRefuse(std::string_view payload);

// No frame of these types is longer, those of kScenario and its answer excepted.
inline constexpr std::uint64_t kMaxHandshakeBytes = 1024;
inline constexpr std::uint64_t kMaxScenarioBytes = 1 << 20;  // of the coordinator's, as text

// What both sides have said and can see, so far.
struct Transcript {
  std::string hello;      // the payload
  std::string challenge;  // likewise
  std::string channel;    // the exporter's value; empty without TLS
};
Digest NodeProof(std::string_view token, const Transcript& said);
Digest CoordinatorProof(std::string_view token, const Transcript& said);

}  // namespace spes::trainer
