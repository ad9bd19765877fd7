#include "tests/fuzz/handshake_ends.h"

#include <array>
#include <span>
#include <stdexcept>
#include <utility>

#include "tests/trainer/runtime/tcp/frame_bytes.h"
#include "tests/trainer/wire/samples.h"
#include "trainer/runtime/compute_pool.h"
#include "trainer/wire/printable.h"

namespace spes::fuzz {

namespace {

using trainer::FrameType;

constexpr std::size_t kLongestLine = 1500;

trainer::Loop& TheLoop() {
  static trainer::ComputePool pool(1);
  static trainer::Loop loop(pool);
  return loop;
}

}  // namespace

void Require(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

HonestSide::HonestSide(std::string token, std::size_t most_at_once)
    : loop_(TheLoop()), token_(std::move(token)), most_at_once_(most_at_once) {
  loop_.SetNow(sim::Time{0});
}

HonestSide::~HonestSide() { loop_.io().poll(); }

void HonestSide::Open() {
  if (talks_.size() == kMostTalks) return;
  Talk& talk = *talks_.emplace_back(std::make_unique<Talk>());
  talk.end = std::make_shared<trainer::MemoryEnd>(loop_.io(), most_at_once_);
  talk.proven = token_.empty();
  Begin(talk, std::make_unique<trainer::MemoryStream>(talk.end));
  Settle();
}

void HonestSide::Hear(std::size_t i, std::string_view bytes) {
  talks_.at(i)->end->Say(bytes);
  Settle();
}

void HonestSide::HearFrame(std::size_t i, FrameType type, std::uint64_t number,
                           std::string payload) {
  Seal(*talks_.at(i), type, payload);
  Hear(i, trainer::FrameBytes(type, number, payload));
}

void HonestSide::Tick(double passed) {
  Pass(passed);
  if (const auto all = session()) all->Tick(passed);
  Settle();
}

void HonestSide::Send(std::size_t kind) {
  static const auto table = trainer::SampleTable(trainer::DType::kFloat32);
  static const auto samples = trainer::SampleMessages(trainer::DType::kFloat32);
  if (const auto all = session()) {
    all->Send(trainer::EncodeMessage(samples[kind % samples.size()].message, *table), {});
  }
  Settle();
}

// Until there is nothing left to do; then looks at what was said.
void HonestSide::Settle() {
  while (loop_.io().poll() > 0) {
  }
  for (const auto& talk : talks_) {
    talk->heard += talk->end->Heard();
    std::string_view rest = talk->heard;
    while (rest.size() >= trainer::kFrameHeaderBytes) {
      const auto bytes = std::as_bytes(std::span(rest));
      const auto head = bytes.first<trainer::kFrameHeaderBytes>();
      const auto header = trainer::DecodeFrameHeader(head, 1 << 20);
      const auto size = static_cast<std::size_t>(header.length);
      if (rest.size() - head.size() < size) break;
      const std::array payload{bytes.subspan(head.size(), size)};
      trainer::CheckPayload(head, payload);
      OnSaid(*talk, header.type, rest.substr(head.size(), size));
      rest.remove_prefix(head.size() + size);
    }
    talk->heard = std::string(rest);
  }
}

bool HonestSide::Finish(bool silent) {
  const bool taken = let_in_ > 0 && !amiss_;
  ending_ = true;
  if (silent) {
    // Held for as long as its node may still be alive; then told why not; then given up.
    for (int i = 0; i < 3; ++i) Tick(1e9);
    for (const auto& talk : talks_) {
      Require(talk->let_in || talk->over, "a silent stranger is waited for");
    }
  }
  for (const auto& talk : talks_) talk->end->Finish();
  Settle();
  for (const auto& talk : talks_) {
    Require(talk->let_in != talk->over, "neither let in nor turned away, or both");
  }
  if (const auto all = session()) all->End(std::nullopt);
  LetGo();
  Settle();
  for (const auto& talk : talks_) Require(!talk->end->exists(), "a connection stays behind");
  return taken;
}

void HonestSide::OnConnectionClosed(trainer::Session&, const trainer::Connection&,
                                    trainer::ConnectionRole, const std::string& why) {
  CheckLine(why);
  if (!ending_) amiss_ = true;
}

void HonestSide::OnBroken(trainer::Session& session, const std::string& why) {
  CheckLine(why);
  amiss_ = true;
  OnBye(session, {true, why});
}

void HonestSide::CheckLine(const std::string& why) {
  Require(trainer::Printable(why) == why, "a message that is not one printable line");
  Require(why.size() <= kLongestLine, "a long message");
}

trainer::Session::Setup HonestSide::SessionSetup() const {
  trainer::Session::Setup setup;
  setup.chunk_bytes = trainer::kMinChunkBytes;
  setup.beat_every_s = 2;
  setup.dead_after_s = 15;
  setup.give_up_after_s = 60;
  setup.limits.head_bytes = 1 << 16;
  return setup;
}

}  // namespace spes::fuzz
