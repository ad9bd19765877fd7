#include "trainer/runtime/tcp/handshake.h"

#include "trainer/runtime/tcp/bytes.h"
#include "trainer/wire/printable.h"

namespace spes::trainer {

namespace {

constexpr std::size_t kMaxHash = 256;

// Each text with its length, so that no two transcripts give the same bytes.
Digest Prove(std::string_view token, std::string_view label, const Transcript& said) {
  return Hmac(
      token,
      ByteWriter().Text(label).Text(said.hello).Text(said.challenge).Text(said.channel).Take());
}

template <class E>
E EnumAtMost(ByteReader& in, E last) {
  const E value = in.Number<E>();
  if (static_cast<int>(value) < 1 || value > last) {
    throw WireError("a frame with a value that means nothing");
  }
  return value;
}

}  // namespace

std::string_view Name(ConnectionRole role) {
  switch (role) {
    case ConnectionRole::kControl:
      return "control";
    case ConnectionRole::kBeat:
      return "beat";
    case ConnectionRole::kBulk:
      return "parameter";
  }
  return "unknown";
}

std::string Encode(const Hello& m) {
  return ByteWriter()
      .Number(m.role)
      .Number(m.index)
      .Array(m.session)
      .Number(m.node)
      .Number(static_cast<std::uint8_t>(m.or_any))
      .Number(m.clock_us)
      .Number(m.chunk_bytes)
      .Number(m.beat_ms)
      .Text(m.scenario_hash)
      .Array(m.nonce)
      .Take();
}

Hello DecodeHello(std::string_view payload) {
  ByteReader in(payload);
  Hello m;
  m.role = EnumAtMost(in, ConnectionRole::kBulk);
  m.index = in.Number<std::uint16_t>();
  m.session = in.Array<16>();
  m.node = in.Number<NodeId>();
  const auto or_any = in.Number<std::uint8_t>();
  m.or_any = or_any == 1;
  m.clock_us = in.Number<std::int64_t>();
  m.chunk_bytes = in.Number<std::uint32_t>();
  m.beat_ms = in.Number<std::uint32_t>();
  m.scenario_hash = Printable(in.Text());
  m.nonce = in.Array<32>();
  in.End();
  const bool bulk = m.role == ConnectionRole::kBulk;
  if (m.index >= (bulk ? kMaxStreams : 1) || or_any > 1 || m.scenario_hash.size() > kMaxHash ||
      m.chunk_bytes < kMinChunkBytes || m.chunk_bytes > kMaxChunkBytes || m.beat_ms == 0 ||
      m.beat_ms > kMaxBeatMs || (m.session == kNoSession && m.role != ConnectionRole::kControl)) {
    throw WireError("a frame with a value that means nothing");
  }
  return m;
}

std::string Encode(const Challenge& m) { return ByteWriter().Array(m.nonce).Take(); }

Challenge DecodeChallenge(std::string_view payload) {
  ByteReader in(payload);
  Challenge m{in.Array<32>()};
  in.End();
  return m;
}

std::string Encode(const Proof& m) { return ByteWriter().Array(m.digest).Take(); }

Proof DecodeProof(std::string_view payload) {
  ByteReader in(payload);
  Proof m{in.Array<32>()};
  in.End();
  return m;
}

std::string Encode(const Welcome& m) {
  return ByteWriter()
      .Array(m.session)
      .Number(m.node)
      .Number(m.now_ns)
      .Number(m.chunk_bytes)
      .Number(m.beat_ms)
      .Array(m.digest)
      .Take();
}

Welcome DecodeWelcome(std::string_view payload) {
  ByteReader in(payload);
  Welcome m;
  m.session = in.Array<16>();
  m.node = in.Number<NodeId>();
  m.now_ns = in.Number<std::int64_t>();
  m.chunk_bytes = in.Number<std::uint32_t>();
  m.beat_ms = in.Number<std::uint32_t>();
  m.digest = in.Array<32>();
  in.End();
  if (m.session == kNoSession || m.node < 0 || m.chunk_bytes < kMinChunkBytes ||
      m.chunk_bytes > kMaxChunkBytes || m.beat_ms == 0 || m.beat_ms > kMaxBeatMs) {
    throw WireError("a frame with a value that means nothing");
  }
  return m;
}

std::string Encode(const Refuse& m) {
  return ByteWriter()
      .Number(m.code)
      .Number(static_cast<std::uint8_t>(m.permanent))
      .Text(m.code == RefuseCode::kScenario ? m.text : m.text.substr(0, kMaxReason))
      .Take();
}

Refuse DecodeRefuse(std::string_view payload) {
  ByteReader in(payload);
  Refuse m;
  m.code = EnumAtMost(in, RefuseCode::kTooMany);
  const auto permanent = in.Number<std::uint8_t>();
  m.permanent = permanent == 1;
  m.text = in.Text();
  if (m.code != RefuseCode::kScenario) m.text = Printable(m.text);
  in.End();
  if (permanent > 1 || (m.code != RefuseCode::kScenario && m.text.size() > kMaxReason)) {
    throw WireError("a frame with a value that means nothing");
  }
  return m;
}

Digest NodeProof(std::string_view token, const Transcript& said) {
  return Prove(token, "spes-sim node", said);
}

Digest CoordinatorProof(std::string_view token, const Transcript& said) {
  return Prove(token, "spes-sim coordinator", said);
}

}  // namespace spes::trainer
