// The run log while it is written, after its writer was killed, and when it cannot be written.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "analysis/hdf5/handle.h"
#include "analysis/hdf5/log_reader.h"
#include "analysis/hdf5/log_writer.h"
#include "tests/analysis/sample_rows.h"
#include "tests/analysis/scratch.h"

namespace spes::analysis {
namespace {

using ::testing::HasSubstr;

// Writes rounds for ever, flushes each and then sends its number.
int WriteForEver(const std::string& path, const std::function<void(int)>& send) {
  const auto recorder = MakeHdf5Recorder(path, {});
  for (int i = 0;; ++i) {
    RecordSampleRound(i, recorder.get());
    recorder->Flush();
    send(i + 1);
  }
}

TEST(RunLogCrashTest, HoldsEverythingUpToTheLastFlushAfterAKill) {
  for (int trial = 0; trial < 20; ++trial) {
    const Scratch scratch;
    const std::string path = scratch / "run.h5";
    Child writer([&](auto send) { return WriteForEver(path, send); });
    int flushed = 0;
    while (flushed < 1 + 17 * trial) {
      flushed = writer.Receive();
      ASSERT_GT(flushed, 0) << "the writer ended";
    }
    std::this_thread::sleep_for(std::chrono::microseconds(37 * trial));  // anywhere in a round
    writer.Kill();
    for (int more; (more = writer.Receive()) > 0;) flushed = more;
    const RunLog log = ReadRunLog(path);
    EXPECT_GE(WholeRounds(log, flushed), flushed) << "trial " << trial;
    EXPECT_EQ(log.status, "running");
    EXPECT_EQ(log.world_hash, "");
  }
}

// A kill in the middle of a write leaves it torn at the border of a page, about once in 500 kills
// at full load: too rare to wait for.
TEST(RunLogCrashTest, NoHeaderCrossesAPage) {
  const Scratch scratch;
  MakeHdf5Recorder(scratch / "run.h5", {})->Finish(RunStatus::kComplete, "");
  const Handle file(H5Fopen((scratch / "run.h5").c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const Handle creation(H5Fget_create_plist(file.get()), H5Pclose);
  H5F_fspace_strategy_t strategy;
  hbool_t persist;
  hsize_t threshold, page;
  Check(H5Pget_file_space_strategy(creation.get(), &strategy, &persist, &threshold));
  Check(H5Pget_file_space_page_size(creation.get(), &page));
  EXPECT_EQ(strategy, H5F_FSPACE_STRATEGY_PAGE);
  EXPECT_EQ(sysconf(_SC_PAGESIZE) % page, 0u);
}

TEST(RunLogCrashTest, MayBeReadWhileItIsWritten) {
  for (int trial = 0; trial < 5; ++trial) {
    const Scratch scratch;
    const std::string path = scratch / "run.h5";
    constexpr int kRounds = 200;
    Child writer([&](auto send) {
      const auto recorder = MakeHdf5Recorder(path, {});
      for (int i = 0; i < kRounds; ++i) {
        RecordSampleRound(i, recorder.get());
        recorder->Flush();
        if (i == 0) send(1);
      }
      recorder->Finish(RunStatus::kComplete, std::string(64, 'h'));
      return 0;
    });
    ASSERT_EQ(writer.Receive(), 1);
    int seen = 1;
    std::string status = "running";
    for (int reads = 0; status == "running"; ++reads) {
      ASSERT_LT(reads, 100000) << "the writer never ends";
      const RunLog log = ReadRunLog(path);
      status = log.status;
      const int rounds = WholeRounds(log, seen);
      ASSERT_GE(rounds, seen);
      seen = rounds;
      EXPECT_EQ(log.world_hash, status == "complete" ? std::string(64, 'h') : log.world_hash);
    }
    EXPECT_EQ(seen, kRounds);
    EXPECT_EQ(writer.Wait(), 0);
  }
}

// Writes rounds until that fails, ten to a flush, and tells how many were flushed; then tries what
// a program that goes on after the failure might do. Returns 0 where all behaves.
int WriteUntilItFails(const std::string& path, const std::function<void(int)>& send,
                      const std::function<void(int)>& before_round) {
  std::unique_ptr<Recorder> recorder = MakeHdf5Recorder(path, {});
  int flushed = 0;
  std::string message = Message<std::runtime_error>([&] {
    for (int i = 0; i < 100000; ++i) {
      before_round(i);
      RecordSampleRound(i, recorder.get());
      if (i % 10 == 9) {
        recorder->Flush();
        flushed = i + 1;
      }
    }
  });
  send(flushed);
  fprintf(stderr, "%s\n", message.c_str());
  if (message.find("run log " + path + ": cannot be written (") != 0) return 1;
  if (message.find('\n') != std::string::npos) return 2;
  if (Message<std::runtime_error>([&] { recorder->Record(SampleStep(0)); }).empty()) return 3;
  if (Message<std::runtime_error>([&] { recorder->Finish(RunStatus::kComplete, ""); }).empty()) {
    return 4;
  }
  recorder->Finish(RunStatus::kFailed, "");
  recorder.reset();
  return 0;
}

// Runs WriteUntilItFails in a child that then ends in the ordinary way, so that HDF5 tidies up too:
// nothing may abort, and nothing but the one line may be printed. Returns the rounds flushed.
int FailInChild(const std::string& path, const std::function<void(int)>& before_round) {
  const std::string said = path + ".stderr";
  Child writer([&](auto send) -> int {
    signal(SIGXFSZ, SIG_IGN);
    if (freopen(said.c_str(), "w", stderr) == nullptr) return 71;
    setvbuf(stderr, nullptr, _IONBF, 0);
    const int status = WriteUntilItFails(path, send, before_round);
    std::exit(status);
  });
  const int flushed = writer.Receive();
  EXPECT_EQ(writer.Wait(), 0);
  std::ifstream lines(said);
  std::string first, second;
  EXPECT_TRUE(std::getline(lines, first));
  EXPECT_FALSE(std::getline(lines, second)) << second;
  EXPECT_THAT(first, HasSubstr("cannot be written ("));
  return flushed;
}

void LimitFileSize(std::uint64_t bytes) {
  rlimit limit;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("no limit");
}

TEST(RunLogFullDiskTest, FailsWithOneLineAndStaysReadable) {
  const Scratch scratch;
  const std::string path = scratch / "run.h5";
  const int flushed = FailInChild(path, [](int round) {
    if (round == 0) LimitFileSize(500000);
  });
  EXPECT_GT(flushed, 50);
  const RunLog log = ReadRunLog(path);
  EXPECT_GE(WholeRounds(log, flushed), flushed);
  EXPECT_EQ(log.status, "failed");
}

// The same, but after the log was promised the space.
TEST(RunLogFullDiskTest, SurvivesAFailedWriteInsideHdf5) {
  // Which table is the first to need space differs between them.
  for (const int last : {50, 60, 80, 90, 100, 120}) {
    const Scratch scratch;
    const std::string path = scratch / "run.h5";
    const int flushed = FailInChild(path, [&](int round) {
      if (round == last) LimitFileSize(std::filesystem::file_size(path));
    });
    EXPECT_GE(flushed, last);
    const RunLog log = ReadRunLog(path);
    EXPECT_GE(WholeRounds(log, flushed), flushed) << last;
    EXPECT_EQ(log.status, "failed") << last;
  }
}

// The file descriptor by which this process holds `path` open.
int DescriptorOf(const std::string& path) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::equivalent(entry.path(), path, ignored)) {
      return std::stoi(entry.path().filename());
    }
  }
  throw std::runtime_error("not open");
}

// As when a disk breaks: no write succeeds any more, not even over what is there.
TEST(RunLogFullDiskTest, SurvivesADiskThatTakesNothingAnyMore) {
  const Scratch scratch;
  const std::string path = scratch / "run.h5";
  const int flushed = FailInChild(path, [&](int round) {
    if (round == 100) dup2(open("/dev/full", O_RDWR), DescriptorOf(path));
  });
  EXPECT_EQ(flushed, 100);
  const RunLog log = ReadRunLog(path);
  EXPECT_EQ(WholeRounds(log, 100), 100);
  EXPECT_EQ(log.status, "running");
}

TEST(RunLogFullDiskTest, SurvivesARealFullDisk) {
  const Scratch scratch;
  const std::string folder = scratch / "small";
  std::filesystem::create_directory(folder);
  if (mount("none", folder.c_str(), "tmpfs", 0, "size=600k") != 0) {
    GTEST_SKIP() << "may not mount a small disk here";
  }
  const std::string path = folder + "/run.h5";
  const int flushed = FailInChild(path, [](int) {});
  const RunLog log = ReadRunLog(path);
  umount(folder.c_str());
  EXPECT_GT(flushed, 50);
  EXPECT_GE(WholeRounds(log, flushed), flushed);
  EXPECT_EQ(log.status, "failed");
}

TEST(RunLogFullDiskTest, NoRoomForEvenTheTablesLeavesNoFile) {
  const Scratch scratch;
  const std::string path = scratch / "run.h5";
  Child writer([&](auto) {
    signal(SIGXFSZ, SIG_IGN);
    LimitFileSize(1000);
    const std::string message = Message<std::runtime_error>([&] { MakeHdf5Recorder(path, {}); });
    std::exit(message.find("File too large") == std::string::npos ? 1 : 0);
    return 0;
  });
  EXPECT_EQ(writer.Wait(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

}  // namespace
}  // namespace spes::analysis
