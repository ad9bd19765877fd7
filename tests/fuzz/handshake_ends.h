// A coordinator and a node that are asked to talk to a stranger: the classes of a real run that
// read what comes, over streams in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/runtime/tcp/memory_stream.h"
#include "trainer/runtime/tcp/gate.h"
#include "trainer/runtime/tcp/handshake.h"
#include "trainer/runtime/tcp/loop.h"
#include "trainer/runtime/tcp/session.h"
#include "trainer/wire/frame.h"

namespace spes::fuzz {

// Throws std::logic_error: a promise is broken.
void Require(bool holds, const std::string& what);

// One connection with a stranger.
struct Talk {
  std::shared_ptr<trainer::MemoryEnd> end;
  trainer::Transcript said;  // as far as the stranger knows it
  bool proven = false;       // the stranger has given the proof of the token, or none is wanted
  bool let_in = false;
  bool over = false;  // turned away, or given up
  std::string heard;  // no whole frame yet
};

// Everything that the stranger does goes through here; every call returns once there is nothing
// left to do but to wait.
class HonestSide : public trainer::Session::Host {
 public:
  HonestSide(std::string token, std::size_t most_at_once);
  ~HonestSide() override;

  // Another connection, kMostTalks at most.
  void Open();
  std::size_t talks() const { return talks_.size(); }
  // The stranger says this on connection `i`.
  void Hear(std::size_t i, std::string_view bytes);
  // The same, as a frame that is whole. A proof of zeros is replaced by the right one, a session
  // of ones by the last one there is.
  void HearFrame(std::size_t i, trainer::FrameType type, std::uint64_t number, std::string payload);
  void Tick(double passed);
  // Sends a message, where there is a session. `kind`: which.
  void Send(std::size_t kind);
  // The stranger closes all connections, or says nothing for as long as it takes to be given up.
  // Then all must be told and let go of. True where it has been let in and nothing was amiss.
  bool Finish(bool silent);

  static constexpr std::size_t kMostTalks = 8;

 protected:
  // Session::Host, as far as both sides do the same.
  void OnArrival(trainer::Session&, trainer::Message) override {}
  void OnConnectionClosed(trainer::Session&, const trainer::Connection&, trainer::ConnectionRole,
                          const std::string& why) override;
  void OnBroken(trainer::Session& session, const std::string& why) override;
  void OnNoRoom(trainer::Session& session, const std::string& why) override {
    OnBroken(session, why);
  }

  virtual void Begin(Talk& talk, std::unique_ptr<trainer::Stream> stream) = 0;
  virtual void Pass(double s) = 0;
  // Puts in what only this side's other end can know.
  virtual void Seal(Talk& talk, trainer::FrameType type, std::string& payload) = 0;
  virtual void OnSaid(Talk& talk, trainer::FrameType type, std::string_view payload) = 0;
  virtual std::shared_ptr<trainer::Session> session() const = 0;  // null: none
  virtual void LetGo() = 0;

  // What goes into logs and errors.
  void CheckLine(const std::string& why);
  trainer::Session::Setup SessionSetup() const;

  trainer::Loop& loop_;
  std::string token_;
  std::vector<std::unique_ptr<Talk>> talks_;
  int let_in_ = 0;
  bool amiss_ = false;  // something was not as it should be
  bool ending_ = false;

 private:
  void Settle();

  std::size_t most_at_once_;
};

inline constexpr char kScenarioHash[] = "5ce0a410";
// Of the coordinator's clock, µs.
inline constexpr std::int64_t kClock = 1'700'000'000'000'000;

std::unique_ptr<HonestSide> MakeCoordinator(std::string token, std::size_t most_at_once);
std::unique_ptr<HonestSide> MakeNode(std::string token, std::size_t most_at_once);

}  // namespace spes::fuzz
