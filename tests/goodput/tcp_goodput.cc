// Goodput of a node's upload over real connections, to be held against iperf3's on the same path.
//
//   spes_tcp_goodput serve HOST:PORT MB [KEYS]     the coordinator; prints a line for each upload
//   spes_tcp_goodput send HOST:PORT MB N [STREAMS] [KEYS]    N uploads of so many megabytes
//
// KEYS is a folder as `spes-sim keys` makes it; without it there is no TLS. results/tcp/goodput.sh
// runs both over loopback and over a shaped link between two network namespaces.
#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "analysis/partial_recorder.h"
#include "trainer/protocol/wire_size.h"
#include "trainer/runtime/tcp/key_files.h"
#include "trainer/runtime/tcp/tcp_runtime.h"

namespace spes::trainer {
namespace {

constexpr std::int64_t kBlocks = 8;

// Prints flows; nothing else is of interest.
class FlowPrinter final : public analysis::PartialRecorder {
 public:
  using analysis::PartialRecorder::Record;
  void Record(const analysis::FlowRecord& r) override {
    std::cout << fmt::format("{} MB in {:.3f} s: {:.1f} Mbit/s, {} retransmissions, RTT {:.3f} ms",
                             r.bytes / 1'000'000, r.end_s - r.start_s, r.goodput_bps / 1e6,
                             r.retransmissions, r.rtt_mean_s * 1e3)
              << std::endl;
  }
  void Record(const analysis::EventRecord& r) override {
    std::cerr << fmt::format("{} {}: {}", r.node, r.kind, r.detail) << std::endl;
  }
};

std::shared_ptr<const BlockTable> MakeTable(std::int64_t megabytes) {
  std::vector<BlockSpec> blocks;
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    blocks.push_back(MakeBlock(DType::kFloat32, BlockKind::kShared, 0, -1,
                               {{fmt::format("part{}", i), {megabytes * 250'000 / kBlocks}}}));
  }
  return std::make_shared<BlockTable>(DType::kFloat32, std::move(blocks));
}

TcpSecurity Security(const std::string& keys, bool coordinator) {
  TcpSecurity security;
  security.tls = !keys.empty();
  if (keys.empty()) return security;
  security.token = ReadToken(keys + "/token");
  security.authority = keys + "/authority.pem";
  if (!coordinator) return security;
  security.certificate = keys + "/coordinator.pem";
  security.key = keys + "/coordinator-key.pem";
  return security;
}

int Serve(const std::string& address, std::int64_t megabytes, const std::string& keys) {
  const auto table = MakeTable(megabytes);
  ComputePool pool(1);
  FlowPrinter recorder;
  TcpServeConfig config;
  config.address = address;
  config.nodes = 1;
  config.security = Security(keys, true);
  config.options.congestion = "cubic";
  config.scenario.hash = "goodput";
  const auto server = ServeTcp(std::move(config), table, pool, recorder);
  bool over = false;
  server->Connect([&over](NodeId, const Message& m) { over |= std::holds_alternative<Leave>(m); },
                  [&over](NodeId, const std::string&) { over = true; });
  server->Run([&over] { return over; }, [] {});
  server->Close(Seconds(5));
  return 0;
}

int Send(const std::string& address, std::int64_t megabytes, int uploads, int streams,
         const std::string& keys) {
  const auto table = MakeTable(megabytes);
  ComputePool pool(1);
  FlowPrinter recorder;
  TcpJoinConfig config;
  config.address = address;
  config.node = 0;
  config.security = Security(keys, false);
  config.options.streams = streams;
  config.options.congestion = "cubic";
  config.scenario.hash = "goodput";
  const std::atomic<bool> stop{false};
  const auto client =
      JoinTcp(std::move(config), table, pool, recorder, stop,
              [](const std::string& why) { std::cerr << "waiting: " << why << std::endl; });
  Offer offer;
  for (BlockId id = 0; id < table->size(); ++id) {
    auto values = std::make_shared<Buffer>(table->Allocate(id));
    for (std::size_t i = 0; i < values->as<float>().size(); i += 64) values->as<float>()[i] = 1;
    offer.blocks.push_back({id, 0, std::move(values)});
  }
  int left = uploads;
  client->Connect([](NodeId, const Message&) {}, [](const std::string&) {});
  for (int i = 0; i < uploads; ++i) {
    offer.span.round = i + 1;
    client->Send(kCoordinator, offer, 0, [&left] { --left; });
  }
  client->Run([&left] { return left == 0; }, [] {});
  client->Send(kCoordinator, Leave{"all is sent"}, 0, {});
  client->Close(Seconds(5));
  return 0;
}

int Main(const std::vector<std::string>& a) {
  const auto word = [&a](std::size_t i, const char* otherwise) {
    return i < a.size() ? a[i] : std::string(otherwise);
  };
  if (a.size() >= 3 && a[0] == "serve") return Serve(a[1], std::stoll(a[2]), word(3, ""));
  if (a.size() >= 4 && a[0] == "send") {
    return Send(a[1], std::stoll(a[2]), std::stoi(a[3]), std::stoi(word(4, "1")), word(5, ""));
  }
  std::cerr
      << "spes_tcp_goodput serve HOST:PORT MB [KEYS] | send HOST:PORT MB N [STREAMS] [KEYS]\n";
  return 2;
}

}  // namespace
}  // namespace spes::trainer

int main(int argc, char** argv) {
  try {
    return spes::trainer::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    return 3;
  }
}
