// The run log as others read it: h5py and, where it is there, pandas.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "analysis/hdf5/log_reader.h"
#include "analysis/hdf5/log_writer.h"
#include "tests/analysis/sample_rows.h"
#include "tests/analysis/scratch.h"

namespace spes::analysis {
namespace {

constexpr char kPrologue[] = R"py(
import sys, h5py
path, rounds, status = sys.argv[1], int(sys.argv[2]), sys.argv[3]
def check(f):
    assert f.attrs["status"].decode() == status, f.attrs["status"]
    assert f.attrs["scenario"] == "name: Größe\n"
    assert f.attrs["seed"] == 7 and f.attrs["schema_version"] == 1
    assert f.attrs["world_hash"].decode() == ("abc" if status == "complete" else "")
    for name in ("program_version", "scenario_hash", "host", "charged"):
        assert isinstance(f.attrs[name], str), name
    tables = {name: f[name][:] for name in f}
    assert set(tables) == {"steps", "rounds", "node_rounds", "flows", "links", "experts", "routing",
                           "evals", "memory", "events"}
    for name, table in tables.items():
        assert len(table) >= rounds * (16 if name == "steps" else 1), (name, len(table))
    steps = tables["steps"]
    assert (steps["step"] == range(1, len(steps) + 1)).all()
    assert abs(steps["lr"][20] - 20.8) < 1e-12 and steps["tokens"][20] == 20 * 1000000007
    assert tables["flows"]["flow"][3] == 2**63 + 3
    assert tables["links"]["name"][3].decode() == "ohio → tokyo 3"
    assert tables["links"]["wire_bytes"][3] == 12 * 10**9
    assert tables["events"]["detail"][3].decode() == "Größe ‖x‖ of node 3"
    try:
        import pandas
    except ImportError:
        return
    frame = pandas.DataFrame(f["evals"][:])
    assert frame["domain"].str.decode("utf-8")[2] == "domain 2"
)py";

class RunLogPythonTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -c 'import h5py' 2>/dev/null") != 0) {
      GTEST_SKIP() << "python3 has no h5py here";
    }
  }

  // Exit status of python3 with kPrologue and `script`.
  int Python(const std::string& script, int rounds, const std::string& status) {
    std::ofstream(scratch_ / "read.py") << kPrologue << script;
    const std::string command = "python3 " + (scratch_ / "read.py") + " " + path_ + " " +
                                std::to_string(rounds) + " " + status;
    return std::system(command.c_str());
  }

  Scratch scratch_;
  std::string path_ = scratch_ / "run.h5";
  RunInfo info_ = {.scenario = "name: Größe\n", .seed = 7};
};

TEST_F(RunLogPythonTest, ReadsAFinishedLog) {
  const auto recorder = MakeHdf5Recorder(path_, info_);
  for (int i = 0; i < 30; ++i) RecordSampleRound(i, recorder.get());
  recorder->Finish(RunStatus::kComplete, "abc");
  EXPECT_EQ(Python("check(h5py.File(path))", 30, "complete"), 0);
  EXPECT_EQ(Python("check(h5py.File(path, 'r', swmr=True))", 30, "complete"), 0);
}

TEST_F(RunLogPythonTest, ReadsALogThatIsBeingWrittenAndOneWhoseWriterWasKilled) {
  Child writer([&](auto send) {
    const auto recorder = MakeHdf5Recorder(path_, info_);
    for (int i = 0; i < 300; ++i) {
      RecordSampleRound(i, recorder.get());
      recorder->Flush();
    }
    send(300);
    while (true) pause();
    return 0;
  });
  ASSERT_EQ(writer.Receive(), 300);
  EXPECT_EQ(Python("check(h5py.File(path, 'r', swmr=True))", 300, "running"), 0);
  writer.Kill();
  EXPECT_EQ(Python("check(h5py.File(path, 'r', swmr=True))", 300, "running"), 0);
  if (std::system(("h5clear -s " + path_ + " 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "h5clear is not here; the rest was read";
  }
  EXPECT_EQ(Python("check(h5py.File(path))", 300, "running"), 0);
  EXPECT_EQ(WholeRounds(ReadRunLog(path_), 300), 300);
}

}  // namespace
}  // namespace spes::analysis
