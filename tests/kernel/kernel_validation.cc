// spes_kernel_validation: the packet level against this machine's kernel, one CSV row per setting.
#include <cstdio>
#include <exception>
#include <string>

#include "tests/kernel/comparison.h"

namespace spes::kernel {
namespace {

using namespace std::chrono_literals;

constexpr int kRuns = 3;

void PrintRow(const Comparison& comparison) {
  const auto& [path, transfer] = comparison.setting;
  const TransferResult& kernel = comparison.kernel();
  std::printf("%.0f,%.0f,%d,%s,%lld,%.3f,%.3f,%.2f,%.2f,%.1f,%lld,%lld\n", path.bps / 1e6,
              sim::ToSeconds(path.rtt) * 1e3, transfer.streams, transfer.congestion.c_str(),
              static_cast<long long>(transfer.bytes), kernel.seconds, comparison.packet_seconds(),
              kernel.goodput_bps / 1e6, comparison.packet_goodput_bps() / 1e6,
              comparison.difference_percent(), static_cast<long long>(kernel.retransmissions),
              static_cast<long long>(comparison.packet().retransmissions));
  std::fflush(stdout);
}

void Run() {
  std::puts(
      "rate_mbps,rtt_ms,streams,congestion,bytes,kernel_s,packet_s,kernel_goodput_mbps,"
      "packet_goodput_mbps,difference_percent,kernel_retransmissions,packet_retransmissions");
  for (const double bps : {20e6, 100e6, 300e6}) {
    for (const sim::Time rtt : {20ms, 80ms}) {
      for (const int streams : {1, 4, 8}) {
        for (const std::string congestion : {"cubic", "reno"}) {
          // About four seconds at the full rate: start-up counts, and does not hide the rest.
          const auto bytes = static_cast<std::int64_t>(bps / 8 * 4);
          PrintRow(Compare(
              {.path = {.bps = bps, .rtt = rtt}, .transfer = {bytes, streams, congestion}}, kRuns));
        }
      }
    }
  }
}

}  // namespace
}  // namespace spes::kernel

int main(int argc, char**) {
  if (argc > 1) {
    std::fputs("spes_kernel_validation takes no arguments; it wants root, tc and TUN devices\n",
               stderr);
    return 2;
  }
  try {
    for (const char* congestion : {"cubic", "reno"}) {
      const std::string missing = spes::kernel::WhatIsMissing(congestion);
      if (missing.empty()) continue;
      std::fprintf(stderr, "this machine cannot: %s\n", missing.c_str());
      return 2;
    }
    spes::kernel::Run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
