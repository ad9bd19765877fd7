#include "trainer/checkpoint/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/analysis/scratch.h"
#include "tests/trainer/checkpoint/faulty_files.h"
#include "tests/trainer/checkpoint/state_samples.h"
#include "tests/trainer/data/temporary_folder.h"
#include "trainer/checkpoint/sealed_file.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class JournalTest : public testing::Test {
 protected:
  CoordinatorState State(std::int32_t round, std::uint64_t seed = 1) const {
    return SampleState(table_, round, seed);
  }
  std::string FileOf(int round) const {
    return at_ + "/round-0000000" + std::to_string(round) + ".safetensors";
  }
  // A byte amid the values is changed.
  void Damage(int round) const {
    const std::string path = FileOf(round);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(path)) - 300;
    file.seekg(middle);
    const char byte = static_cast<char>(file.get() ^ 4);
    file.seekp(middle);
    file.put(byte);
  }

  std::shared_ptr<const BlockTable> table_ = StateTable(DType::kFloat32);
  TemporaryFolder folder_;
  std::string at_ = folder_.Path("runs/journal");
  std::vector<std::string> warnings_;
};

TEST_F(JournalTest, ReadsWhatWasWritten) {
  Journal journal(at_);
  EXPECT_THAT(journal.Rounds(), IsEmpty());
  EXPECT_FALSE(journal.Newest(table_, warnings_));
  journal.Write(State(0));
  journal.Write(State(1));
  EXPECT_THAT(journal.Rounds(), ElementsAre(1, 0));
  EXPECT_EQ(Difference(*journal.Newest(table_, warnings_), State(1)), "");
  EXPECT_EQ(Difference(journal.Read(0, table_), State(0)), "");
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(FileOf(1)));
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { journal.Read(7, table_); }),
              AllOf(StartsWith(FileOf(7)), HasSubstr("No such file")));
}

TEST_F(JournalTest, KeepsTheLastAndEachSoManyth) {
  Journal journal(at_, {.last = 3, .every = 4});
  for (int round = 0; round <= 9; ++round) journal.Write(State(round));
  EXPECT_THAT(journal.Rounds(), ElementsAre(9, 8, 7, 4, 0));
  Journal two(folder_.Path("two"));
  for (int round = 0; round <= 9; ++round) two.Write(State(round));
  EXPECT_THAT(two.Rounds(), ElementsAre(9, 8));
  Journal one(folder_.Path("one"), {.last = 1});
  for (int round = 5; round <= 9; round += 2) one.Write(State(round));
  EXPECT_THAT(one.Rounds(), ElementsAre(9));
}

TEST_F(JournalTest, AWrongRetentionIsRefused) {
  EXPECT_THAT(MessageOf<std::invalid_argument>([&] { Journal journal(at_, {.last = 0}); }),
              HasSubstr("at least 1"));
  EXPECT_THAT(
      MessageOf<std::invalid_argument>([&] { Journal journal(at_, {.last = 1, .every = -1}); }),
      HasSubstr("0 for none"));
  EXPECT_FALSE(std::filesystem::exists(at_));
}

TEST_F(JournalTest, WhoeverGoesBackForgetsTheFutureThatDidNotHappen) {
  Journal journal(at_, {.last = 2, .every = 2});
  for (int round = 0; round <= 7; ++round) journal.Write(State(round));
  EXPECT_THAT(journal.Rounds(), ElementsAre(7, 6, 4, 2, 0));
  journal.Write(State(5, 2));
  EXPECT_THAT(journal.Rounds(), ElementsAre(5, 4, 2, 0));
  EXPECT_EQ(Difference(*journal.Newest(table_, warnings_), State(5, 2)), "");
}

TEST_F(JournalTest, SkipsDamagedFilesAndNamesThem) {
  Journal journal(at_, {.last = 9});
  for (int round = 0; round <= 4; ++round) journal.Write(State(round));
  Damage(4);
  std::filesystem::resize_file(FileOf(3), 100);
  folder_.Write("runs/journal/round-00000009.safetensors", "");
  EXPECT_EQ(Difference(*journal.Newest(table_, warnings_), State(2)), "");
  EXPECT_THAT(warnings_, ElementsAre(StartsWith(at_ + "/round-00000009"), StartsWith(FileOf(4)),
                                     StartsWith(FileOf(3))));
  for (const std::string& warning : warnings_) EXPECT_EQ(warning.find('\n'), std::string::npos);
  EXPECT_THAT(journal.Rounds(), ElementsAre(9, 4, 3, 2, 1, 0));
  EXPECT_THAT(MessageOf<DamagedFile>([&] { journal.Read(4, table_); }), HasSubstr("checksum"));
  // Writing the round anew takes the place of the damaged one, and what was after it goes.
  journal.Write(State(3, 2));
  EXPECT_THAT(journal.Rounds(), ElementsAre(3, 2, 1, 0));
  for (int round = 0; round <= 3; ++round) std::filesystem::resize_file(FileOf(round), 10);
  EXPECT_FALSE(journal.Newest(table_, warnings_));
  EXPECT_EQ(warnings_.size(), 3u + 4u);
}

// A whole file of another model is no reason to begin anew, or with an older one.
TEST_F(JournalTest, AnotherModelsStateIsRefusedNotSkipped) {
  Journal journal(at_);
  journal.Write(State(1));
  const auto other = StateTable(DType::kFloat32, 4);
  EXPECT_THAT(MessageOf<std::invalid_argument>([&] { journal.Newest(other, warnings_); }),
              AllOf(StartsWith(FileOf(1)), HasSubstr("the model needs F32 [5, 4]")));
  EXPECT_THAT(warnings_, IsEmpty());
  std::filesystem::rename(FileOf(1), FileOf(2));
  EXPECT_EQ(MessageOf<std::invalid_argument>([&] { journal.Newest(table_, warnings_); }),
            FileOf(2) + ": holds round 1; has it been renamed?");
}

TEST_F(JournalTest, OneAtATime) {
  const std::string mine = std::to_string(getpid());
  {
    const Journal journal(at_);
    const std::string expected =
        at_ + ": is in use by process " + mine + "; end it, or take another folder";
    EXPECT_EQ(MessageOf<std::runtime_error>([&] { const Journal second(at_); }), expected);
    analysis::Child child([&](auto) {
      return MessageOf<std::runtime_error>([&] { const Journal second(at_); }) == expected ? 0 : 1;
    });
    EXPECT_EQ(child.Wait(), 0);
  }
  // The lock's file stays and locks nothing.
  const Journal again(at_);
  EXPECT_TRUE(std::filesystem::exists(at_ + "/.lock"));
}

// However the process ends.
TEST_F(JournalTest, AKilledProcessHoldsNoLock) {
  analysis::Child child([&](auto report) {
    const Journal journal(at_);
    report(1);
    pause();
    return 0;
  });
  ASSERT_EQ(child.Receive(), 1);
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { const Journal second(at_); }),
              HasSubstr("is in use by process "));
  child.Kill();
  const Journal journal(at_);
}

TEST_F(JournalTest, AFolderThatCannotBeUsedIsNamed) {
  folder_.Write("file", "");
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { Journal journal(folder_.Path("file")); }),
              StartsWith(folder_.Path("file") + ": "));
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { Journal journal(folder_.Path("file/below")); }),
              StartsWith(folder_.Path("file/below") + ": cannot be created: "));
  FaultyFiles files;
  files.first = 1;  // after the folder was opened, its sync
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { Journal journal(at_, {}, files); }),
              StartsWith(at_ + ": cannot be created: "));
}

TEST_F(JournalTest, AMovedFolderIsRead) {
  { Journal(at_).Write(State(3)); }
  std::filesystem::rename(at_, folder_.Path("elsewhere"));
  const Journal journal(folder_.Path("elsewhere"));
  EXPECT_EQ(Difference(*journal.Newest(table_, warnings_), State(3)), "");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(JournalTest, CleansUpWhatAnInterruptedWriteLeftAndNothingElse) {
  std::filesystem::create_directories(at_);
  const std::vector<std::string> others = {"notes.txt",
                                           "round-00000001.safetensors.tmp~",
                                           "round-1.safetensors.tmp",
                                           "round-1.safetensors",
                                           "round-.safetensors",
                                           "round-00000001.safetensors.bak",
                                           "round--0000001.safetensors",
                                           "round-99999999999.safetensors"};
  for (const std::string& name : others) folder_.Write("runs/journal/" + name, "x");
  folder_.Write("runs/journal/round-00000007.safetensors.tmp", "half of a st");
  const Journal journal(at_);
  EXPECT_FALSE(std::filesystem::exists(FileOf(7) + ".tmp"));
  for (const std::string& name : others) EXPECT_TRUE(std::filesystem::exists(at_ + "/" + name));
  EXPECT_THAT(journal.Rounds(), IsEmpty());
}

TEST_F(JournalTest, RoundsOfMoreThanEightDigits) {
  Journal journal(at_);
  const std::int32_t last = std::numeric_limits<std::int32_t>::max();
  for (const std::int32_t round : {99'999'999, 100'000'000, last - 1, last}) {
    journal.Write(State(round));
  }
  EXPECT_THAT(journal.Rounds(), ElementsAre(last, last - 1));
}

}  // namespace
}  // namespace spes::trainer
