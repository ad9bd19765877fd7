#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "analysis/hdf5/log_reader.h"
#include "analysis/hdf5/log_writer.h"
#include "analysis/hdf5/row_codec.h"
#include "analysis/version.h"
#include "tests/analysis/sample_rows.h"
#include "tests/analysis/scratch.h"

namespace spes::analysis {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const RunInfo kInfo = {.scenario = "name: tiny\nmodel: {layers: 2}\n",
                       .scenario_hash = "0123abcd",
                       .seed = 0xFFFFFFFFFFFFFFF0ULL,
                       .charged = "spes_2b on l40s_48gb"};

TEST(RunLogTest, GivesBackEveryRowOfEveryTable) {
  const Scratch scratch;
  {
    const auto recorder = MakeHdf5Recorder(scratch / "run.h5", kInfo);
    for (int i = 0; i < 50; ++i) {
      RecordSampleRound(i, recorder.get());
      if (i % 7 == 0) recorder->Flush();
    }
    recorder->Finish(RunStatus::kComplete, "abc123");
  }
  const RunLog log = ReadRunLog(scratch / "run.h5");
  EXPECT_EQ(WholeRounds(log, 50), 50);
  EXPECT_EQ(log.rounds.size(), 50u);
  EXPECT_EQ(log.steps.size(), 50u * kStepsPerRound);
  EXPECT_EQ(log.info.scenario, kInfo.scenario);
  EXPECT_EQ(log.info.scenario_hash, kInfo.scenario_hash);
  EXPECT_EQ(log.info.seed, kInfo.seed);
  EXPECT_EQ(log.info.charged, kInfo.charged);
  EXPECT_EQ(log.status, "complete");
  EXPECT_EQ(log.world_hash, "abc123");
  EXPECT_EQ(log.program_version, ProgramVersion());
  EXPECT_THAT(log.host, HasSubstr("core"));
}

TEST(RunLogTest, TheHeadIsTheLogWithoutRows) {
  const Scratch scratch;
  const auto recorder = MakeHdf5Recorder(scratch / "run.h5", kInfo);
  RecordSampleRound(0, recorder.get());
  recorder->Flush();
  EXPECT_TRUE(std::isnan(ReadRunLogHead(scratch / "run.h5").wall_s));
  recorder->Finish(RunStatus::kComplete, "abc123");
  const RunLog head = ReadRunLogHead(scratch / "run.h5");
  EXPECT_EQ(head.info.scenario_hash, kInfo.scenario_hash);
  EXPECT_EQ(head.status, "complete");
  EXPECT_GE(head.wall_s, 0);
  EXPECT_EQ(head.wall_s, ReadRunLog(scratch / "run.h5").wall_s);
  EXPECT_TRUE(head.steps.empty() && head.rounds.empty());
  EXPECT_FALSE(ReadRunLog(scratch / "run.h5").steps.empty());
}

TEST(RunLogTest, KeepsNotANumberAndInfinity) {
  const Scratch scratch;
  const auto recorder = MakeHdf5Recorder(scratch / "run.h5", {});
  FlowRecord flow;
  flow.rtt_min_s = std::numeric_limits<double>::quiet_NaN();
  flow.goodput_bps = std::numeric_limits<double>::infinity();
  recorder->Record(flow);
  recorder->Finish(RunStatus::kComplete, "");
  const RunLog log = ReadRunLog(scratch / "run.h5");
  ASSERT_EQ(log.flows.size(), 1u);
  EXPECT_TRUE(std::isnan(log.flows[0].rtt_min_s));
  EXPECT_TRUE(std::isinf(log.flows[0].goodput_bps));
}

TEST(RunLogTest, AnEmptyRunIsALogOfEmptyTables) {
  const Scratch scratch;
  MakeHdf5Recorder(scratch / "run.h5", {})->Finish(RunStatus::kInterrupted, "");
  const RunLog log = ReadRunLog(scratch / "run.h5");
  EXPECT_EQ(log.status, "interrupted");
  EXPECT_EQ(log.world_hash, "");
  EXPECT_TRUE(log.steps.empty());
  EXPECT_TRUE(log.events.empty());
}

TEST(RunLogTest, HoldsLongScenarios) {
  const Scratch scratch;
  const std::string scenario(300000, 'x');  // more than the 64 KiB that a header may hold
  MakeHdf5Recorder(scratch / "run.h5", {.scenario = scenario})->Finish(RunStatus::kComplete, "h");
  const RunLog log = ReadRunLog(scratch / "run.h5");
  EXPECT_EQ(log.info.scenario, scenario);
  EXPECT_EQ(log.status, "complete");
}

TEST(RunLogTest, TakesManyRows) {
  const Scratch scratch;
  constexpr int kRows = 100000;
  const auto recorder = MakeHdf5Recorder(scratch / "run.h5", {});
  for (int i = 0; i < kRows; ++i) {
    recorder->Record(SampleStep(i));
    if (i % 1000 == 0) recorder->Flush();
  }
  recorder->Finish(RunStatus::kComplete, "");
  const RunLog log = ReadRunLog(scratch / "run.h5");
  ASSERT_EQ(log.steps.size(), static_cast<std::size_t>(kRows));
  for (int i = 0; i < kRows; ++i) ASSERT_EQ(log.steps[i], SampleStep(i));
  const double bytes = std::filesystem::file_size(scratch / "run.h5");
  EXPECT_LT(bytes, 1.1 * kRows * RowSize<StepRecord>() + 200000);
}

TEST(RunLogTest, CutsLongTextVisiblyAndBetweenCharacters) {
  EXPECT_EQ(CutText("fits", 4), "fits");
  EXPECT_EQ(CutText("longer", 5), "lo…");
  EXPECT_EQ(CutText("aüüü", 6), "aü…");
  EXPECT_EQ(CutText("aüüüü", 7), "aü…");  // half a character is none
  const Scratch scratch;
  const auto recorder = MakeHdf5Recorder(scratch / "run.h5", {});
  recorder->Record(EventRecord{.kind = "lost", .detail = std::string(1000, 'd')});
  recorder->Record(EventRecord{.kind = std::string(kNameWidth, 'k')});
  recorder->Finish(RunStatus::kComplete, "");
  const RunLog log = ReadRunLog(scratch / "run.h5");
  ASSERT_EQ(log.events.size(), 2u);
  EXPECT_EQ(log.events[0].detail, std::string(kDetailWidth - 3, 'd') + "…");
  EXPECT_EQ(log.events[1].kind, std::string(kNameWidth, 'k'));
}

TEST(RunLogTest, ARecorderThatIsDroppedLeavesAFailedLog) {
  const Scratch scratch;
  RecordSampleRound(0, MakeHdf5Recorder(scratch / "run.h5", kInfo).get());
  const RunLog log = ReadRunLog(scratch / "run.h5");
  EXPECT_EQ(log.status, "failed");
  EXPECT_EQ(WholeRounds(log, 1), 1);
}

TEST(RunLogTest, NothingGoesIntoAFinishedLog) {
  const Scratch scratch;
  const auto recorder = MakeHdf5Recorder(scratch / "run.h5", kInfo);
  recorder->Finish(RunStatus::kComplete, "");
  EXPECT_THAT(Message<std::runtime_error>([&] { recorder->Record(SampleStep(0)); }),
              HasSubstr("already closed"));
  EXPECT_THROW(recorder->Flush(), std::runtime_error);
  EXPECT_THROW(recorder->Finish(RunStatus::kComplete, ""), std::runtime_error);
}

TEST(RunLogTest, AnExistingFileIsWrittenAnew) {
  const Scratch scratch;
  const std::string path = scratch / "run.h5";
  const auto old_run = MakeHdf5Recorder(path, {.scenario = "old"});
  RecordSampleRound(0, old_run.get());
  old_run->Flush();
  const auto new_run = MakeHdf5Recorder(path, {.scenario = "new"});
  EXPECT_EQ(ReadRunLog(path).info.scenario, "new");
  EXPECT_TRUE(ReadRunLog(path).steps.empty());
  old_run->Finish(RunStatus::kComplete, "old");
  EXPECT_EQ(ReadRunLog(path).status, "running");
  new_run->Finish(RunStatus::kComplete, "new");
  EXPECT_EQ(ReadRunLog(path).world_hash, "new");
  std::ofstream(path) << "not HDF5";
  MakeHdf5Recorder(path, {.scenario = "third"})->Finish(RunStatus::kComplete, "");
  EXPECT_EQ(ReadRunLog(path).info.scenario, "third");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / ""), {}), 1);
}

TEST(RunLogTest, ALinkStaysALink) {
  const Scratch scratch;
  std::ofstream(scratch / "target.h5") << "old";
  std::filesystem::create_symlink(scratch / "target.h5", scratch / "link.h5");
  MakeHdf5Recorder(scratch / "link.h5", kInfo)->Finish(RunStatus::kComplete, "");
  EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link.h5"));
  EXPECT_EQ(ReadRunLog(scratch / "target.h5").status, "complete");
}

std::string Refusal(const std::string& path) {
  return Message<std::invalid_argument>([&] { MakeHdf5Recorder(path, kInfo); });
}

TEST(RunLogTest, SaysWhatIsWrongWithAPath) {
  const Scratch scratch;
  std::ofstream(scratch / "file") << "keep";
  EXPECT_EQ(Refusal(scratch / "absent/run.h5"), "output file " + (scratch / "absent/run.h5") +
                                                    ": there is no folder " + (scratch / "absent") +
                                                    "; create it or name another");
  EXPECT_EQ(Refusal(scratch / "file/run.h5"), "output file " + (scratch / "file/run.h5") + ": " +
                                                  (scratch / "file") +
                                                  " is not a folder; name another");
  EXPECT_THAT(Refusal(scratch / ""), HasSubstr("is a folder; name a file in it, such as "));
  EXPECT_THAT(Refusal("/dev/null"), HasSubstr("is not a regular file"));
  EXPECT_THAT(Refusal(""), HasSubstr("no name given"));
  EXPECT_THAT(Refusal(scratch / std::string(300, 'x')), HasSubstr("File name too long"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch / ""), {}), 1);
}

TEST(RunLogTest, SaysThatAFolderIsNotWritable) {
  const Scratch scratch;
  Child child([&](auto) {
    std::filesystem::permissions(scratch / "", std::filesystem::perms(0555));
    if (geteuid() == 0 && seteuid(65534) != 0) return 1;  // root may write anywhere
    const std::string refusal = Refusal(scratch / "run.h5");
    fprintf(stderr, "%s\n", refusal.c_str());
    return refusal.find("cannot be created in folder") != std::string::npos &&
                   refusal.find("Permission denied") != std::string::npos
               ? 0
               : 1;
  });
  EXPECT_EQ(child.Wait(), 0);
  std::filesystem::permissions(scratch / "", std::filesystem::perms(0755));
}

std::string ReadFailure(const std::string& path) {
  return Message<std::runtime_error>([&] { ReadRunLog(path); });
}

TEST(RunLogTest, SaysWhatIsWrongWithAFile) {
  const Scratch scratch;
  std::ofstream(scratch / "text") << "some text";
  std::ofstream(scratch / "empty");
  MakeHdf5Recorder(scratch / "newer", kInfo)->Finish(RunStatus::kComplete, "");
  MakeHdf5Recorder(scratch / "cut", kInfo)->Finish(RunStatus::kComplete, "");
  std::filesystem::resize_file(scratch / "cut", 400);
  {
    const QuietHdf5 quiet;
    const Handle other(
        H5Fcreate((scratch / "other").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Handle newer(H5Fopen((scratch / "newer").c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    const Handle schema(H5Aopen(newer.get(), "schema_version", H5P_DEFAULT), H5Aclose);
    const int version = 99;
    Check(H5Awrite(schema.get(), H5T_NATIVE_INT, &version));
  }
  EXPECT_EQ(ReadFailure(scratch / "absent"),
            "run log " + (scratch / "absent") + ": there is no such file");
  EXPECT_THAT(ReadFailure(scratch / "text"), HasSubstr("cannot be read as HDF5"));
  EXPECT_THAT(ReadFailure(scratch / "empty"), HasSubstr("cannot be read as HDF5"));
  EXPECT_THAT(ReadFailure(scratch / "cut"), HasSubstr("cannot be read as HDF5"));
  EXPECT_THAT(ReadFailure(scratch / ""), HasSubstr("cannot be read as HDF5"));
  EXPECT_THAT(ReadFailure(scratch / "other"), HasSubstr("not a run log"));
  EXPECT_THAT(
      ReadFailure(scratch / "newer"),
      AllOf(HasSubstr("schema version 99"), HasSubstr("use a newer one"), Not(HasSubstr("\n"))));
}

TEST(RunLogTest, ReadsALogThatLacksATableOrAColumn) {
  const Scratch scratch;
  const std::string path = scratch / "run.h5";
  MakeHdf5Recorder(path, kInfo)->Finish(RunStatus::kComplete, "");
  {
    const Handle file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    Check(H5Ldelete(file.get(), "events", H5P_DEFAULT));
    Check(H5Ldelete(file.get(), "experts", H5P_DEFAULT));
    const Handle type(H5Tcreate(H5T_COMPOUND, 4), H5Tclose);
    Check(H5Tinsert(type.get(), "round", 0, H5T_NATIVE_INT32));
    const hsize_t one = 1;
    const Handle space(H5Screate_simple(1, &one, nullptr), H5Sclose);
    const Handle table(H5Dcreate2(file.get(), "experts", type.get(), space.get(), H5P_DEFAULT,
                                  H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose);
    const int round = 7;
    Check(H5Dwrite(table.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &round));
  }
  const RunLog log = ReadRunLog(path);
  EXPECT_TRUE(log.events.empty());
  ASSERT_EQ(log.experts.size(), 1u);
  EXPECT_EQ(log.experts[0], (ExpertRecord{.round = 7}));  // nearest is −1, its default
}

TEST(TeeRecorderTest, EndsEveryPartEvenWhenOneCannotWrite) {
  const Scratch scratch;
  const auto closed = MakeHdf5Recorder(scratch / "a.h5", {});
  const auto open = MakeHdf5Recorder(scratch / "b.h5", {});
  closed->Finish(RunStatus::kComplete, "");
  TeeRecorder both({closed.get(), open.get()});
  EXPECT_THROW(both.Finish(RunStatus::kComplete, "hash"), std::runtime_error);
  EXPECT_EQ(ReadRunLog(scratch / "b.h5").world_hash, "hash");
}

}  // namespace
}  // namespace spes::analysis
