#include "sim/ns3/fast_tx_buffer.h"

#include <dlfcn.h>
#include <ns3/packet.h>
#include <ns3/simulator.h>
#include <ns3/tcp-tx-buffer.h>

#include <algorithm>

namespace spes::sim {
namespace {

struct Use {
  bool fast = true;
  long calls = 0;
};

Use& TheUse() {
  static Use use;
  return use;
}

// Whether to do the work here.
bool Fast() {
  Use& use = TheUse();
  use.calls += use.fast;
  return use.fast;
}

// ns-3's own version of a member, as a function of the object.
template <typename Function>
Function* Original(const char* symbol) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol));
}

}  // namespace

void LinkFastTxBuffer() {}

void SetFastTxBuffer(bool fast) { TheUse().fast = fast; }

long FastTxBufferCalls() { return TheUse().calls; }

}  // namespace spes::sim

namespace ns3 {

// RFC 6675, section 4, NextSeg: the sequence range to send next, rules 1 to 3 in this order. Only
// rule 1 (something is lost) and rule 3 (in recovery, and nothing new to send) need the window.
bool TcpTxBuffer::NextSeg(SequenceNumber32* seq, SequenceNumber32* seqHigh, bool isRecovery) const {
  if (!spes::sim::Fast()) {
    static auto* const original =
        spes::sim::Original<bool(const TcpTxBuffer*, SequenceNumber32*, SequenceNumber32*, bool)>(
            "_ZNK3ns311TcpTxBuffer7NextSegEPNS_14SequenceNumberIjiEES3_b");
    return original(this, seq, seqHigh, isRecovery);
  }
  const SequenceNumber32 unsent = m_firstByteSeq.Get() + m_sentSize;
  const bool has_unsent = SizeFromSequence(unsent) > 0;
  const TcpTxItem* rule3 = nullptr;
  if (m_lostOut > 0 || (isRecovery && !has_unsent)) {
    for (const TcpTxItem* item : m_sentList) {
      if (item->m_retrans || item->m_sacked) continue;
      if (m_sackSeen && item->m_startSeq >= m_highestSack.second) continue;
      if (item->m_lost) {
        *seq = item->m_startSeq;
        *seqHigh = *seq + m_segmentSize;
        return true;
      }
      if (!rule3) rule3 = item;
    }
  }
  if (has_unsent) {
    const std::uint32_t window = m_rWndCallback();
    if (m_sentSize >= window) return false;
    *seq = unsent;
    *seqHigh = *seq + std::min(m_segmentSize, window - m_sentSize);
    return true;
  }
  if (!isRecovery || !rule3) return false;
  *seq = rule3->m_startSeq;
  *seqHigh = *seq + m_segmentSize;
  return true;
}

// The segment at `seq`. What was sent before in one piece of the wanted size, or cannot be joined
// with the next piece, is found in one walk; new data and every other case are ns-3's to do.
TcpTxItem* TcpTxBuffer::CopyFromSequence(std::uint32_t numBytes, const SequenceNumber32& seq) {
  static auto* const original =
      spes::sim::Original<TcpTxItem*(TcpTxBuffer*, std::uint32_t, const SequenceNumber32&)>(
          "_ZN3ns311TcpTxBuffer16CopyFromSequenceEjRKNS_14SequenceNumberIjiEE");
  const std::uint32_t size = std::min(numBytes, SizeFromSequence(seq));
  const bool sent = size > 0 && m_firstByteSeq.Get() + m_sentSize >= seq + size;
  if (!sent || !spes::sim::Fast()) return original(this, numBytes, seq);
  const auto found = std::find_if(m_sentList.begin(), m_sentList.end(),
                                  [&](const TcpTxItem* item) { return item->m_startSeq >= seq; });
  if (found == m_sentList.end() || (*found)->m_startSeq != seq)
    return original(this, numBytes, seq);
  TcpTxItem* const item = *found;
  const std::uint32_t whole = item->m_packet->GetSize();
  const auto next = std::next(found);
  const bool joins =
      next != m_sentList.end() && !(*next)->m_sacked && item->m_lost == (*next)->m_lost;
  if (size < whole || (size > whole && joins)) return original(this, numBytes, seq);
  if (!item->m_retrans) {
    m_retrans += whole;
    item->m_retrans = true;
  }
  item->m_lastSent = Simulator::Now();
  return item;
}

// Whether the segment that ends at `ack` was sent again and is not SACKed.
bool TcpTxBuffer::IsRetransmittedDataAcked(const SequenceNumber32& ack) const {
  if (!spes::sim::Fast()) {
    static auto* const original =
        spes::sim::Original<bool(const TcpTxBuffer*, const SequenceNumber32&)>(
            "_ZNK3ns311TcpTxBuffer24IsRetransmittedDataAckedERKNS_14SequenceNumberIjiEE");
    return original(this, ack);
  }
  for (const TcpTxItem* item : m_sentList) {
    if (item->m_startSeq >= ack) return false;
    if (item->m_startSeq + item->m_packet->GetSize() == ack) {
      return item->m_retrans && !item->m_sacked;
    }
  }
  return false;
}

// ns-3's scoreboard after an acknowledgement with SACK blocks, and one thing more: what was sent
// again and has not arrived, although something sent later has, is lost again (RFC 8985; the paths
// keep the order). ns-3 waits for a time-out then.
std::uint32_t TcpTxBuffer::Update(const TcpOptionSack::SackList& list,
                                  const Callback<void, TcpTxItem*>& sackedCb) {
  static auto* const original = spes::sim::Original<std::uint32_t(
      TcpTxBuffer*, const TcpOptionSack::SackList&, const Callback<void, TcpTxItem*>&)>(
      "_ZN3ns311TcpTxBuffer6UpdateERKNSt7__cxx114listISt4pairINS_14SequenceNumberIjiEES5_ESaIS6_"
      "EEERKNS_8CallbackIvJPNS_9TcpTxItemEEEE");
  const std::uint32_t sacked = original(this, list, sackedCb);
  if (sacked == 0 || m_retrans == 0) return sacked;
  Time newest = Seconds(0);
  for (const TcpTxItem* item : m_sentList) {
    if (item->m_sacked) newest = std::max(newest, item->m_lastSent);
  }
  for (TcpTxItem* item : m_sentList) {
    if (!item->m_retrans || item->m_sacked || item->m_lastSent >= newest) continue;
    item->m_retrans = false;
    m_retrans -= item->m_packet->GetSize();
  }
  return sacked;
}

}  // namespace ns3
