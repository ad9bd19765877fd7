// The protocol on real machines: messages cross TCP connections, time is the wall clock.
//
// One coordinator listens; nodes only dial out. Between the two is a *session*, which outlives its
// connections: one for control, one for beats, and `streams` for parameters. A session whose
// connections break is taken up again from the last byte that was acknowledged. Everything happens
// on the thread that calls Run; only the work of Compute is elsewhere.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "analysis/recorder.h"
#include "trainer/protocol/runtime.h"
#include "trainer/runtime/compute_pool.h"
#include "trainer/wire/message_codec.h"

namespace spes::trainer {

using Seconds = std::chrono::duration<double>;

// Who is who. Files in PEM form.
struct TcpSecurity {
  bool tls = true;          // TLS 1.3; without, only loopback addresses are allowed
  std::string certificate;  // the coordinator's; a node's where the coordinator asks for one
  std::string key;
  std::string authority;         // whoever signed the other side's certificate
  bool ask_certificate = false;  // coordinator: nodes must show one that `authority` signed
  std::string token;             // shared secret, never sent; empty: none is asked for
};

struct TcpOptions {
  int streams = 1;                        // connections for parameters
  std::string congestion;                 // cubic, reno, bbr, …; empty: the system's
  std::int64_t chunk_bytes = 1 << 20;     // of a transfer's payload
  Seconds beat_every{2}, dead_after{15};  // silence that breaks a connection
  Seconds give_up_after{60};              // without a connection, a session ends, and its number
                                          // is given to others where no other one is left
  Seconds dial_for{0};                    // a node, in vain; 0: without end
  Seconds handshake_time{10};             // from connect to being let in
  int connections_per_address = 256;      // that are not let in yet: 16 at most
  Seconds clock_difference{300};          // that is tolerated between the two sides
  // Uploads whose values are in memory at once, counted until the protocol has let go of them;
  // those beyond go to files in `spool` (a folder, made where it is absent) and are mapped.
  int uploads_in_memory = 2;
  std::string spool;
  WireLimits limits;
};

// What both sides must have in common.
struct TcpScenario {
  std::string hash;
  std::string text;  // resolved YAML; only shown to who holds the secret
  // One line that names the first difference between the coordinator's text and a node's.
  std::function<std::string(const std::string& ours, const std::string& theirs)> difference;
};

// What a session has seen, for whoever shows or records it.
struct TcpNodeStatus {
  bool connected = false;
  std::string address;                                      // of the other side, as text
  double rtt_s = std::numeric_limits<double>::quiet_NaN();  // smoothed, of the connection for
                                                            // beats; NaN where not measured
  std::int64_t sent_bytes = 0, received_bytes = 0, retransmissions = 0;
  int reconnects = 0;
  std::int64_t transfer_bytes = 0, transfer_done = 0;  // of the one underway, either way

  // The counts of sessions before it as well.
  void AddCounts(const TcpNodeStatus& past) {
    sent_bytes += past.sent_bytes;
    received_bytes += past.received_bytes;
    retransmissions += past.retransmissions;
    reconnects += past.reconnects;
  }
};

// What the coordinator and the nodes have in common: timers, work, the loop.
class TcpRuntime : public Runtime {
 public:
  using OnMessage = std::function<void(NodeId from, const Message&)>;
  using OnLost = std::function<void(NodeId peer, const std::string& reason)>;

  // Runs call-backs until Stop, or until `until` is true after one; calls `tick` about every 0.1 s,
  // during Work too.
  // Throws what a call-back or a work has thrown.
  virtual void Run(const std::function<bool()>& until, const std::function<void()>& tick) = 0;

  // From any thread, also from a signal handler's thread.
  virtual void Stop() = 0;

  // Waits until everything that was sent has been acknowledged, at most `d`; then closes politely.
  virtual void Close(Seconds d) = 0;

  // Now() from here on counts from `now`.
  virtual void SetNow(sim::Time now) = 0;

  virtual TcpNodeStatus StatusOf(NodeId node) const = 0;
};

// The coordinator's side. Constructing it binds: throws std::invalid_argument, one line, when the
// address cannot be had (what has it, or who may not), when a file of `security` cannot be read or
// does not fit, or when TLS is off on an address that is no loopback one.
struct TcpServeConfig {
  std::string address;  // HOST:PORT, [IPV6]:PORT; port 0: any free one
  int nodes = 0;
  // Nodes that run inside the coordinator's process are not assigned to anyone.
  std::function<bool(NodeId)> taken = {};
  // An earlier process has let all nodes in: they come back, and have their numbers meanwhile.
  bool resumed = false;
  TcpSecurity security;
  TcpOptions options;
  TcpScenario scenario;
};
class TcpServer : public TcpRuntime {
 public:
  // "HOST:PORT" with the port that was given.
  virtual std::string address() const = 0;
  // Before Run. `on_message` is called with messages of nodes that were let in, `lost` when a
  // session has ended without a Leave.
  virtual void Connect(OnMessage on_message, OnLost lost) = 0;
  // Where an upload that came as codes is read into; see TcpOptions::uploads_in_memory.
  virtual Allocate DecodeMemory() = 0;
  // Reads the files of `security` again: connections from now on are shown what they hold. Throws
  // as the constructor does on files that are no good, and nothing has changed then.
  virtual void RenewCertificate() = 0;
  // Ends the node's session, and refuses it from now on with this reason.
  virtual void Ban(NodeId node, const std::string& reason) = 0;
};
std::unique_ptr<TcpServer> ServeTcp(TcpServeConfig config, std::shared_ptr<const BlockTable> table,
                                    ComputePool& pool, analysis::Recorder& recorder);

// A node's side.
struct TcpJoinConfig {
  std::string address;                   // of the coordinator
  std::optional<NodeId> node;            // nothing: the coordinator chooses a free one
  std::optional<NodeId> preferred = {};  // this one, if it is free
  int nodes = 0;                         // of the run
  TcpSecurity security;
  TcpOptions options;
  TcpScenario scenario;
};
class TcpClient : public TcpRuntime {
 public:
  // The node that this is.
  virtual NodeId node() const = 0;
  // Before Run. `renewed`: the coordinator does not know the session any more (it began anew, or
  // has given this node up): nothing that was underway arrives. It has a new session already.
  virtual void Connect(OnMessage on_message,
                       std::function<void(const std::string& why)> renewed) = 0;
  // In place of Close, where this node cannot go on: the coordinator is told why. What was under
  // way is given up, and no call-back of Connect's is called any more. Never throws.
  virtual void Fail(const std::string& why) = 0;
};
// Dials until it is let in, or `stop`: the coordinator may be started later; `waiting` is called
// with why after every try that failed for a passing reason. Throws std::invalid_argument, one
// line, when it is refused for good: certificate expired or of another host, token wrong, scenario
// differing (the first difference is named), clocks too far apart, node taken, other version. Once
// it has been let in, clocks that drift apart are waited for.
// Returns null when stopped. Throws std::runtime_error once it has dialled for `dial_for` in vain;
// so does the client's Run.
std::unique_ptr<TcpClient> JoinTcp(TcpJoinConfig config, std::shared_ptr<const BlockTable> table,
                                   ComputePool& pool, analysis::Recorder& recorder,
                                   const std::atomic<bool>& stop,
                                   const std::function<void(const std::string& why)>& waiting);

}  // namespace spes::trainer
