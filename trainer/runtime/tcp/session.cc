#include "trainer/runtime/tcp/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>
#include <utility>

#include "trainer/runtime/tcp/upload_memory.h"

namespace spes::trainer {

namespace {
constexpr double kRttGain = 0.125;  // of a smoothed round trip, as RFC 6298 has it
}  // namespace

Session::Session(Setup setup, std::shared_ptr<const BlockTable> table, Loop& loop, Host& host)
    : setup_(std::move(setup)),
      loop_(loop),
      host_(host),
      outbox_(setup_.chunk_bytes),
      inbox_(std::move(table), setup_.limits, setup_.other_chunk_bytes, setup_.memory) {
  // A side that gives rare signs of life is not dead between two of them.
  setup_.dead_after_s = std::max(setup_.dead_after_s, 3 * setup_.other_beat_s);
}

// Connections.

const Session::Link* Session::LinkOf(const Connection& connection) const {
  const auto found = std::ranges::find_if(
      links_, [&](const Link& link) { return link.connection.get() == &connection; });
  return found == links_.end() ? nullptr : &*found;
}

Session::Link* Session::LinkOf(const Connection& connection) {
  return const_cast<Link*>(std::as_const(*this).LinkOf(connection));
}

const Session::Link* Session::LinkOf(ConnectionRole role, int index) const {
  const auto found = std::ranges::find_if(
      links_, [&](const Link& link) { return link.role == role && link.index == index; });
  return found == links_.end() ? nullptr : &*found;
}

bool Session::Has(ConnectionRole role, int index) const { return LinkOf(role, index) != nullptr; }

bool Session::connected() const {
  return Has(ConnectionRole::kControl, 0) && std::ranges::any_of(links_, [](const Link& link) {
           return link.role == ConnectionRole::kBulk;
         });
}

template <class F>
void Session::ForEach(ConnectionRole role, F f) {
  for (const Link& link : links_) {
    if (link.role == role) f(*link.connection);
  }
}

void Session::WakeAll(ConnectionRole role) {
  ForEach(role, [](Connection& connection) { connection.Wake(); });
}

// By value: whoever has it may end in here.
void Session::Attach(std::shared_ptr<Connection> connection,  // NOLINT
                     ConnectionRole role, int index) {
  if (const Link* old = LinkOf(role, index)) {
    old->connection->Close("", false);
    Detach(*old);
  }
  links_.push_back({connection, role, index, ++last_id_, false, setup_.beat_every_s});
  connection->SetOwner(shared_from_this());
  if (role == ConnectionRole::kControl && backlogged()) connection->Pause();
  if (role == ConnectionRole::kBulk && outbox_.transfer()) meter_.Add(*connection);
  if (role == ConnectionRole::kControl) {
    outbox_.OnControl();
    ack_due_ = true;
    figures_due_ = figures_of_ != 0;
    if (std::exchange(had_control_, true)) ++past_.reconnects;
  }
  connection->Wake();
}

// The connection is closed.
void Session::Detach(Link link) {
  meter_.Remove(*link.connection);
  outbox_.OnConnectionLost(link.id);
  inbox_.OnConnectionLost(link.id);
  past_.sent_bytes += link.connection->sent_bytes();
  past_.received_bytes += link.connection->received_bytes();
  past_.retransmissions += link.connection->Counters().retransmitted_segments;
  std::erase_if(links_, [&](const Link& each) { return each.id == link.id; });
  if (outbox_.HasChunk()) WakeAll(ConnectionRole::kBulk);
}

void Session::OnClosed(Connection& connection, const std::string& why, bool) {
  const auto self = shared_from_this();
  const Link* found = LinkOf(connection);
  if (!found || ended_) return;
  const Link link = *found;
  Detach(link);
  host_.OnConnectionClosed(*this, connection, link.role, why);
}

void Session::Tick(double passed) {
  if (ended_) return;
  away_s_ = connected() ? 0 : away_s_ + passed;
  const bool control = Has(ConnectionRole::kControl, 0);
  const std::vector<Link> links = links_;  // closing changes them
  // However many there are, they may share a slow link.
  const double slowest =
      Connection::kSlowest / static_cast<double>(std::max<std::size_t>(links.size(), 1));
  for (const Link& link : links) {
    link.connection->Tick(passed, setup_.dead_after_s, slowest, control);
  }
  for (Link& link : links_) {
    link.since_beat_s += passed;
    if (link.since_beat_s < setup_.beat_every_s) continue;
    link.since_beat_s = 0;
    link.beat_due = true;
    link.connection->Wake();
  }
  unheard_s_ = outbox_.idle() || !connected() ? 0 : unheard_s_ + passed;
  const double most = setup_.give_up_after_s + static_cast<double>(setup_.chunk_bytes) / slowest;
  if (unheard_s_ <= most) return;
  const auto self = shared_from_this();
  host_.OnBroken(*this, fmt::format("it has acknowledged nothing for {:.3g} s", unheard_s_));
}

void Session::End(const std::optional<Bye>& bye) {
  if (ended_) return;
  const auto self = shared_from_this();
  ended_ = true;
  if (setup_.coordinator) {
    ReportReceived();
    if (const TransferInfo* info = outbox_.transfer()) {
      host_.OnTransfer(*this, {*info, true, false, outbox_.acknowledged_bytes(), sending_since_,
                               loop_.Now(), meter_.Figures()});
    }
    const std::int64_t bytes = inbox_.received_bytes();
    if (const auto info = inbox_.Abandon()) {
      host_.OnTransfer(*this, {*info, false, false, bytes, receiving_since_, loop_.Now(), {}});
    }
  }
  for (const Link& link : std::vector<Link>(links_)) {
    if (bye && link.role == ConnectionRole::kControl) {
      while (const auto frame = outbox_.NextFrame()) {
        link.connection->Put(frame->type, frame->number, frame->payload);
      }
      link.connection->Put(FrameType::kBye, 0, Encode(*bye));
      link.connection->FinishAndClose();
    } else {
      link.connection->Close("", false);
    }
    Detach(link);
  }
}

// What comes.

std::optional<std::uint64_t> Session::Most(const Connection& connection, FrameType type) const {
  const Link* link = LinkOf(connection);
  if (!link) return std::nullopt;
  const ConnectionRole role = link->role;
  if (type == FrameType::kBeat) return kBeatBytes;
  if (role == ConnectionRole::kBulk && type == FrameType::kChunk) {
    return sizeof(std::int64_t) + static_cast<std::uint64_t>(setup_.other_chunk_bytes);
  }
  if (role != ConnectionRole::kControl) return std::nullopt;
  switch (type) {
    case FrameType::kMessage:
    case FrameType::kBegin:
      return static_cast<std::uint64_t>(setup_.limits.head_bytes);
    case FrameType::kAck:
      return kMaxAckBytes;
    case FrameType::kBye:
      return kMaxByeBytes;
    default:
      return std::nullopt;
  }
}

void Session::OnFrame(Connection& connection, const FrameHeader& header, std::string_view payload) {
  const auto self = shared_from_this();
  const Link* link = LinkOf(connection);
  if (!link || ended_) return;
  ++frames_;
  try {
    switch (header.type) {
      case FrameType::kMessage:
        return Take(inbox_.OnMessage(header.number, payload), false, payload.size());
      case FrameType::kBegin: {
        const bool first = inbox_.payload_bytes() == 0;
        auto message = inbox_.OnBegin(header.number, payload);
        if (first) receiving_since_ = loop_.Now() - HalfTrip();
        ForEach(ConnectionRole::kBulk, [](Connection& each) { each.Resume(); });
        return Take(std::move(message), true, payload.size());
      }
      case FrameType::kAck:
        return OnAck(header.number, payload);
      case FrameType::kBeat:
        return OnBeat(link->role, DecodeBeat(payload));
      case FrameType::kBye:
        return host_.OnBye(*this, DecodeBye(payload));
      default:
        return;
    }
  } catch (const WireError& error) {
    // Its checksum is right: this is what the other side meant to send.
    host_.OnBroken(*this, error.what());
  } catch (const NoRoomError& error) {
    host_.OnNoRoom(*this, error.what());
  } catch (const std::bad_alloc&) {
    host_.OnNoRoom(*this, "a message has no memory");
  }
}

// After a message's frame, and after the last chunk of one.
void Session::Take(std::optional<Message> message, bool bulk, std::size_t head_bytes) {
  ack_due_ = true;
  WakeAll(ConnectionRole::kControl);
  if (!message) return;
  if (bulk && setup_.coordinator) {
    ReportReceived();
    const TransferInfo& info = inbox_.last_transfer();
    received_ = TransferReport{info, false, true, info.bytes, receiving_since_, loop_.Now(), {}};
  }
  ++unhandled_;
  unhandled_bytes_ += head_bytes;
  host_.OnArrival(*this, std::move(*message));
  loop_.Call([self = shared_from_this(), head_bytes] { self->OnHandled(head_bytes); });
  if (!backlogged()) return;
  ForEach(ConnectionRole::kControl, [](Connection& connection) { connection.Pause(); });
}

// The protocol has done with a message.
void Session::OnHandled(std::size_t head_bytes) {
  --unhandled_;
  unhandled_bytes_ -= head_bytes;
  if (backlogged()) return;
  ForEach(ConnectionRole::kControl, [](Connection& connection) { connection.Unpause(); });
}

Inbox::Place Session::Find(Connection& connection, std::uint64_t transfer, std::int64_t offset,
                           std::int64_t bytes) {
  const Link* link = LinkOf(connection);
  if (!link || ended_) return {};
  Inbox::Place place = inbox_.Find(transfer, offset, bytes, link->id);
  if (place.instead_of) {
    const auto stale = std::ranges::find_if(
        links_, [&](const Link& each) { return each.id == *place.instead_of; });
    // Never this one: it has finished its chunk before it begins another.
    if (stale != links_.end()) {
      const auto stays_alive = stale->connection;
      stays_alive->Close("its chunk has come on another connection");
    }
  }
  return place;
}

void Session::OnChunk(Connection&, std::uint32_t chunk) {
  const auto self = shared_from_this();
  if (ended_) return;
  ++frames_;
  Take(inbox_.OnChunk(chunk), true, 0);
}

void Session::OnAck(std::uint64_t number, std::string_view payload) {
  if (number != 0) {
    if (!setup_.coordinator || !received_ || received_->info.number != number) return;
    received_->figures = DecodeFigures(payload);
    return ReportReceived();
  }
  Outbox::Progress progress = outbox_.OnArrived(DecodeArrived(payload));
  if (progress.any) unheard_s_ = 0;
  for (auto& f : progress.delivered) loop_.Call(std::move(f));
  if (progress.finished) OnFinished(*progress.finished);
  WakeAll(ConnectionRole::kControl);
  if (outbox_.HasChunk()) WakeAll(ConnectionRole::kBulk);
}

// The transfer that this side has sent is there.
void Session::OnFinished(const TransferInfo& info) {
  const TransferFigures figures = meter_.Figures();
  if (setup_.coordinator) {
    const sim::Time end = std::max(sending_since_, loop_.Now() - HalfTrip());
    host_.OnTransfer(*this, {info, true, true, info.bytes, sending_since_, end, figures});
    return;
  }
  figures_of_ = info.number;
  figures_ = figures;
  figures_due_ = true;
}

void Session::ReportReceived() {
  if (received_) host_.OnTransfer(*this, *std::exchange(received_, std::nullopt));
}

std::int64_t Session::Clock() const {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void Session::OnBeat(ConnectionRole role, const Beat& beat) {
  if (role != ConnectionRole::kBeat) return;
  const std::int64_t now = Clock();
  other_sent_ = beat.sent;
  other_came_ = now;
  if (beat.echo == 0) return;
  // They may be anything: as unsigned numbers they wrap around, where signed ones must not.
  const auto under_way = static_cast<std::int64_t>(static_cast<std::uint64_t>(now) -
                                                   static_cast<std::uint64_t>(beat.echo) -
                                                   static_cast<std::uint64_t>(beat.held));
  const double rtt = 1e-9 * static_cast<double>(under_way);
  if (!(rtt >= 0) || rtt > setup_.dead_after_s) return;  // not of this connection
  rtt_s_ = std::isnan(rtt_s_) ? rtt : rtt_s_ + kRttGain * (rtt - rtt_s_);
}

// Time that what has just come was under way.
sim::Time Session::HalfTrip() const {
  return std::isnan(rtt_s_) ? sim::Time{0} : sim::FromSeconds(rtt_s_ / 2);
}

// What goes.

void Session::Send(OutgoingMessage message, std::function<void()> delivered) {
  if (ended_) return;
  outbox_.Send(std::move(message), std::move(delivered));
  if (outbox_.full()) {
    const auto self = shared_from_this();
    return host_.OnBroken(*this, "more waits for it than it has acknowledged for long");
  }
  WakeAll(ConnectionRole::kControl);
}

void Session::Fill(Connection& connection) {
  Link* link = LinkOf(connection);
  if (!link || ended_) return;
  if (link->role == ConnectionRole::kControl && FillControl(*link)) return;
  if (link->role == ConnectionRole::kBulk) {
    if (auto chunk = outbox_.NextChunk(link->id)) {
      meter_.Sample(connection);
      return connection.PutChunk(std::move(*chunk));
    }
  }
  if (!std::exchange(link->beat_due, false)) return;
  Beat beat{Clock(), 0, 0};
  if (link->role == ConnectionRole::kBeat && other_sent_ != 0) {
    beat.echo = other_sent_;
    beat.held = beat.sent - other_came_;
  }
  connection.Put(FrameType::kBeat, 0, Encode(beat));
}

bool Session::FillControl(Link& link) {
  if (std::exchange(ack_due_, false)) {
    link.connection->Put(FrameType::kAck, 0, Encode(inbox_.state()));
    return true;
  }
  if (std::exchange(figures_due_, false)) {
    link.connection->Put(FrameType::kAck, figures_of_, Encode(figures_));
    return true;
  }
  auto frame = outbox_.NextFrame();
  if (!frame) return false;
  if (frame->type == FrameType::kBegin && frame->number != sending_) {
    sending_ = frame->number;
    sending_since_ = loop_.Now();
    meter_.Begin();
    ForEach(ConnectionRole::kBulk, [&](Connection& bulk) { meter_.Add(bulk); });
  }
  link.connection->Put(frame->type, frame->number, std::move(frame->payload));
  WakeAll(ConnectionRole::kBulk);
  return true;
}

std::vector<std::shared_ptr<Connection>> Session::connections() const {
  std::vector<std::shared_ptr<Connection>> all;
  for (const Link& link : links_) all.push_back(link.connection);
  return all;
}

TcpNodeStatus Session::Status() const {
  TcpNodeStatus status = past_;
  status.connected = !ended_ && connected();
  status.rtt_s = rtt_s_;
  for (const Link& link : links_) {
    status.sent_bytes += link.connection->sent_bytes();
    status.received_bytes += link.connection->received_bytes();
    status.retransmissions += link.connection->Counters().retransmitted_segments;
    if (link.role == ConnectionRole::kControl) status.address = link.connection->address();
  }
  if (inbox_.payload_bytes() > 0) {
    status.transfer_bytes = inbox_.payload_bytes();
    status.transfer_done = inbox_.received_bytes();
  } else if (const TransferInfo* info = outbox_.transfer()) {
    status.transfer_bytes = info->payload_bytes;
    status.transfer_done = outbox_.acknowledged_bytes();
  }
  return status;
}

}  // namespace spes::trainer
