// What a coordinator and a node share beyond the life of any one connection: the messages that are
// under way between them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"
#include "trainer/runtime/tcp/connection.h"
#include "trainer/runtime/tcp/flow_meter.h"
#include "trainer/runtime/tcp/handshake.h"
#include "trainer/runtime/tcp/inbox.h"
#include "trainer/runtime/tcp/link.h"
#include "trainer/runtime/tcp/loop.h"
#include "trainer/runtime/tcp/outbox.h"

namespace spes::trainer {

// A message with parameters that is here, or given up.
struct TransferReport {
  TransferInfo info;
  bool sent = false;  // by this side
  bool done = false;
  std::int64_t bytes = 0;  // of info.bytes that arrived
  sim::Time start{0}, end{0};
  TransferFigures figures;
};

class Session : public Connection::Owner, public std::enable_shared_from_this<Session> {
 public:
  // Whoever has the session. Called by the loop, or from within End.
  class Host {
   public:
    virtual ~Host() = default;
    virtual void OnArrival(Session& session, Message message) = 0;
    // Only where the setup says that this is the coordinator.
    virtual void OnTransfer(Session&, const TransferReport&) {}
    virtual void OnConnectionClosed(Session& session, const Connection& connection,
                                    ConnectionRole role, const std::string& why) = 0;
    virtual void OnBye(Session& session, const Bye& bye) = 0;
    // What has come is against the rules: the session cannot go on.
    virtual void OnBroken(Session& session, const std::string& why) = 0;
    // This side has no room for what has been announced: the session cannot go on.
    virtual void OnNoRoom(Session& session, const std::string& why) = 0;
  };

  struct Setup {
    SessionId id{};
    NodeId node = 0;
    bool coordinator = false;  // this side is
    std::int64_t chunk_bytes = 0;
    std::int64_t other_chunk_bytes = 0;
    double beat_every_s = 0, other_beat_s = 0, dead_after_s = 0, give_up_after_s = 0;
    WireLimits limits;
    Inbox::Memory memory;
  };
  // References must outlive the session.
  Session(Setup setup, std::shared_ptr<const BlockTable> table, Loop& loop, Host& host);

  const SessionId& id() const { return setup_.id; }
  NodeId node() const { return setup_.node; }

  // A connection that was let in, in place of the one that had its role.
  void Attach(std::shared_ptr<Connection> connection, ConnectionRole role, int index);
  bool Has(ConnectionRole role, int index) const;
  // Messages of every kind can cross.
  bool connected() const;
  // How long it has not been.
  double away_s() const { return away_s_; }
  // How many frames have come, so far: a sign of life.
  std::uint64_t frames() const { return frames_; }
  // Within this time a frame comes from who is alive, unless the network is slow.
  double silence_s() const { return 2 * setup_.other_beat_s + 1; }

  void Send(OutgoingMessage message, std::function<void()> delivered);
  bool idle() const { return outbox_.idle(); }

  void Tick(double passed);

  // Closes all connections; says why if `bye`. What was under way is reported as given up.
  void End(const std::optional<Bye>& bye);
  bool ended() const { return ended_; }

  TcpNodeStatus Status() const;
  std::vector<std::shared_ptr<Connection>> connections() const;

  // Connection::Owner.
  std::optional<std::uint64_t> Most(const Connection& connection, FrameType type) const override;
  void OnFrame(Connection& connection, const FrameHeader& header,
               std::string_view payload) override;
  Inbox::Place Find(Connection& connection, std::uint64_t transfer, std::int64_t offset,
                    std::int64_t bytes) override;
  void OnChunk(Connection& connection, std::uint32_t chunk) override;
  void Fill(Connection& connection) override;
  void OnClosed(Connection& connection, const std::string& why, bool permanent) override;

 private:
  struct Link {
    std::shared_ptr<Connection> connection;
    ConnectionRole role;
    int index;
    int id;
    bool beat_due = false;
    double since_beat_s;
  };

  Link* LinkOf(const Connection& connection);
  const Link* LinkOf(const Connection& connection) const;
  const Link* LinkOf(ConnectionRole role, int index) const;
  void Detach(Link link);
  template <class F>
  void ForEach(ConnectionRole role, F f);
  void WakeAll(ConnectionRole role);
  void Take(std::optional<Message> message, bool bulk, std::size_t head_bytes);
  void OnHandled(std::size_t head_bytes);
  bool backlogged() const {
    return unhandled_ >= kMostUnhandled || unhandled_bytes_ >= kMostUnhandledBytes;
  }
  void OnAck(std::uint64_t number, std::string_view payload);
  void OnFinished(const TransferInfo& info);
  void OnBeat(ConnectionRole role, const Beat& beat);
  bool FillControl(Link& link);
  std::int64_t Clock() const;
  sim::Time HalfTrip() const;
  void ReportReceived();

  Setup setup_;
  Loop& loop_;
  Host& host_;
  Outbox outbox_;
  Inbox inbox_;
  std::vector<Link> links_;
  int last_id_ = 0;
  bool ended_ = false;
  double away_s_ = 0;
  double unheard_s_ = 0;  // for which something has been sent and nothing acknowledged
  // What has been handed on and the protocol has not done with yet. More than this waits in the
  // other side's socket, not in this side's memory.
  static constexpr int kMostUnhandled = 16;
  static constexpr std::size_t kMostUnhandledBytes = 1 << 20;
  int unhandled_ = 0;
  std::size_t unhandled_bytes_ = 0;  // of heads
  std::uint64_t frames_ = 0;
  bool had_control_ = false;
  bool ack_due_ = false;

  std::int64_t other_sent_ = 0, other_came_ = 0;  // its last beat, and when it came
  double rtt_s_ = std::numeric_limits<double>::quiet_NaN();

  // Of the transfer that this side sends.
  std::uint64_t sending_ = 0;
  sim::Time sending_since_{0};
  FlowMeter meter_;
  // A node: figures of the last one that it has sent.
  std::uint64_t figures_of_ = 0;
  TransferFigures figures_;
  bool figures_due_ = false;
  // The coordinator: of the transfer that comes, and of the last one that has, until its figures
  // do.
  sim::Time receiving_since_{0};
  std::optional<TransferReport> received_;

  TcpNodeStatus past_;  // of connections that are closed
};

}  // namespace spes::trainer
