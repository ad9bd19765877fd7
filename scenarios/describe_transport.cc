#include "scenarios/describe_parts.h"

namespace spes::scenarios {

void Describe(TransportSection& transport, Visitor& v) {
  constexpr Limits kSomeSeconds = {.min = 0.01, .max = 86400};
  OneOf<TransportKind>(v,
                       {"kind",
                        "What carries the messages: sim, the model under `network`, in virtual "
                        "time; tcp, real connections between real processes."},
                       transport.kind,
                       {{"sim", TransportKind::kSim}, {"tcp", TransportKind::kTcp}});
  OneOf<TlsUse>(v,
                {"tls",
                 "Encryption of connections, TLS 1.3. auto: on, except where the coordinator's "
                 "address is a loopback one (127.0.0.1, ::1, localhost) and transport.mutual is "
                 "false; it cannot be off elsewhere. Must be the same on both sides."},
                transport.tls,
                {{"auto", TlsUse::kAuto}, {"on", TlsUse::kOn}, {"off", TlsUse::kOff}});
  v.OnValue({"keys",
             "Folder with certificates and the token that let nodes in, as `spes-sim keys` makes "
             "it. Empty: none."},
            &transport.keys);
  v.OnValue({"mutual", "Nodes have to show a certificate as well."}, &transport.mutual);
  v.OnValue({"congestion",
             "Congestion control of the connections: cubic, reno, bbr or whatever the system has. "
             "Empty: as network.tcp.congestion."},
            &transport.congestion);
  v.OnValue({"chunk",
             "Size of the pieces that parameters are sent in.",
             {.min = 4096, .max = 0x1p28},
             Unit::kByteSize},
            &transport.chunk_bytes);
  v.OnValue({"beat_every", "Time between signs of life.", kSomeSeconds}, &transport.beat_every);
  v.OnValue({"dead_after", "Silence after which a connection counts as broken.", kSomeSeconds},
            &transport.dead_after);
  v.OnValue({"give_up_after",
             "Time without any connection after which a node counts as lost; sync.patience comes "
             "on top.",
             kSomeSeconds},
            &transport.give_up_after);
  v.OnValue(
      {"dial_for",
       "Time without any connection after which a node ends, with exit code 3. 0 s: never, it "
       "dials until the coordinator is back.",
       kDuration},
      &transport.dial_for);
  v.OnValue({"handshake_time", "Time that a connection has to be let in.", kSomeSeconds},
            &transport.handshake_time);
  v.OnValue({"clock_difference",
             "Difference between the clocks of a node and the coordinator "
             "that is put up with.",
             kSomeTime},
            &transport.clock_difference);
  v.OnValue({"uploads_in_memory",
             "Uploads that the coordinator receives into memory; further ones at the same time go "
             "to files beside the journal.",
             AtLeast(1, 100'000)},
            &transport.uploads_in_memory);
  v.OnValue(
      {"status",
       "HOST:PORT of the status page and of /metrics, which the coordinator or the simulation "
       "serves without encryption. Empty: none."},
      &transport.status);
}

}  // namespace spes::scenarios
