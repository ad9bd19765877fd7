// Whatever step of a write fails, what was there before can be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/checkpoint/faulty_files.h"
#include "tests/trainer/checkpoint/stores.h"
#include "tests/trainer/data/temporary_folder.h"
#include "trainer/checkpoint/round_folder.h"

namespace spes::trainer {
namespace {

using testing::AnyOf;
using testing::Eq;
using testing::HasSubstr;
using testing::StartsWith;

class WriteFaults : public StoreTest {
 protected:
  std::unique_ptr<RoundStore> Reopened(FileSystem& files = FileSystem::Real(),
                                       std::int64_t width = 3) {
    return GetParam().open(folder_.Path("s"), files, width);
  }
  // Besides the lock.
  int Files() const {
    int files = 0;
    for (const auto& each : std::filesystem::directory_iterator(folder_.Path("s"))) {
      files += each.path().filename() != ".lock";
    }
    return files;
  }
  // A folder with rounds 1 and 2.
  void Prepare() {
    std::filesystem::remove_all(folder_.Path("s"));
    const auto store = Reopened();
    store->Write({1, 1});
    store->Write({2, 2});
  }

  TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(, WriteFaults, kStoreKinds, NameOf);

TEST_P(WriteFaults, EachCallInTurn) {
  int failures = 0;
  for (const int error : {ENOSPC, EIO}) {
    bool reached = true;
    for (int call = 0; reached; ++call) {
      SCOPED_TRACE(call);
      Prepare();
      FaultyFiles files;
      const auto store = Reopened(files);
      files.error = error;
      files.first = files.calls + call;
      bool failed = false;
      try {
        store->Write({3, 3});
      } catch (const std::runtime_error& e) {
        failed = true;
        EXPECT_THAT(e.what(), StartsWith(folder_.Path("s")));
        EXPECT_THAT(e.what(), HasSubstr(std::strerror(error)));
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      }
      failures += failed;
      reached = files.calls > files.first;
      files.count = 0;
      if (failed) {
        // The last step is the folder's sync, with the new file in place.
        EXPECT_THAT(store->Newest(), AnyOf(Eq(RoundEntry{2, 2}), Eq(RoundEntry{3, 3})));
        EXPECT_EQ(Files(), store->Newest()->round == 2 ? 2 : 3);
      } else {
        EXPECT_EQ(store->Newest(), (RoundEntry{3, 3}));
      }
      // The same store goes on once the fault is gone, and has no more files than it should.
      store->Write({3, 4});
      EXPECT_EQ(store->Newest(), (RoundEntry{3, 4}));
      EXPECT_EQ(Files(), 2);
    }
  }
  EXPECT_GE(failures, 2 * 6);  // open, write, sync, close, rename, sync of the folder
}

// The disk is gone from that call on: not even what is left over can be removed.
TEST_P(WriteFaults, EachCallAndAllThatFollow) {
  bool reached = true;
  for (int call = 0; reached; ++call) {
    SCOPED_TRACE(call);
    Prepare();
    FaultyFiles files;
    {
      const auto store = Reopened(files);
      files.first = files.calls + call;
      files.count = std::numeric_limits<int>::max() - files.first;
      bool failed = false;
      try {
        store->Write({3, 3});
      } catch (const std::runtime_error&) {
        failed = true;
      }
      reached = files.calls > files.first;
      EXPECT_THAT(store->Newest(),
                  AnyOf(Eq(RoundEntry{failed ? 2 : 3, failed ? 2 : 3}), Eq(RoundEntry{3, 3})));
    }
    const auto store = Reopened();
    EXPECT_THAT(store->Newest(), AnyOf(Eq(RoundEntry{2, 2}), Eq(RoundEntry{3, 3})));
    EXPECT_LE(Files(), 3);
    store->Write({4, 4});
    EXPECT_EQ(store->Newest(), (RoundEntry{4, 4}));
    EXPECT_EQ(Files(), 2);
  }
}

TEST_P(WriteFaults, InterruptedAndShortWritesAreContinued) {
  Prepare();
  FaultyFiles files;
  files.most_bytes = 7;
  const auto store = Reopened(files);
  store->Write({3, 3});
  EXPECT_EQ(store->Newest(), (RoundEntry{3, 3}));
  files.error = EINTR;
  files.first = files.calls + 3;  // amid the writes
  store->Write({4, 4});
  EXPECT_EQ(store->Newest(), (RoundEntry{4, 4}));
}

// Where a run has gone back, the later rounds go first; a fault leaves a state that was whole.
TEST_P(WriteFaults, GoingBack) {
  bool reached = true;
  for (int call = 0; reached; ++call) {
    SCOPED_TRACE(call);
    Prepare();
    FaultyFiles files;
    const auto store = Reopened(files);
    files.first = files.calls + call;
    try {
      store->Write({1, 9});
      EXPECT_EQ(store->Newest(), (RoundEntry{1, 9}));
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(store->Newest(),
                  AnyOf(Eq(RoundEntry{2, 2}), Eq(RoundEntry{1, 1}), Eq(RoundEntry{1, 9})));
    }
    reached = files.calls > files.first;
    files.count = 0;
    store->Write({1, 10});
    EXPECT_EQ(store->Newest(), (RoundEntry{1, 10}));
    EXPECT_EQ(Files(), 1);
  }
}

// Files that have gone, and may come back in a power cut, are no reason not to sync again.
TEST(WriteFaultsOfRemoval, ASyncThatHasFailedIsDoneAgain) {
  const TemporaryFolder folder;
  FaultyFiles files;
  RoundFolder rounds(folder.Path("s"), ".state", files);
  for (const int round : {1, 2}) std::ofstream(rounds.FileOf(round)) << round;
  files.first = files.calls + 2;  // removal, opening of the folder, its sync
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { rounds.RemoveAfter(1); }),
              HasSubstr("cannot be synced"));
  EXPECT_EQ(rounds.Rounds(), std::vector<std::int32_t>{1});
  const int before = files.calls;
  rounds.RemoveAfter(1);
  EXPECT_EQ(files.calls, before + 3);  // the folder is opened, synced, closed
  rounds.RemoveAfter(1);
  EXPECT_EQ(files.calls, before + 3);
}

// The real thing: a device that is always full.
TEST_P(WriteFaults, AFullDisk) {
  Prepare();
  const auto store = Reopened();
  const std::string ending = GetParam().name == std::string("Journal") ? ".safetensors" : ".state";
  const std::string file = folder_.Path("s/round-00000003" + ending);
  std::filesystem::create_symlink("/dev/full", file + ".tmp");
  EXPECT_EQ(MessageOf<std::runtime_error>([&] {
              store->Write({3, 3});
            }),
            file + ": cannot be written: No space left on device");
  EXPECT_FALSE(std::filesystem::is_symlink(file + ".tmp"));
  EXPECT_EQ(store->Newest(), (RoundEntry{2, 2}));
}

}  // namespace
}  // namespace spes::trainer
