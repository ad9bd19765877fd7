// A study with all its runs resolved, and the folder that they are kept in.
#pragma once

#include <string>
#include <vector>

#include "scenarios/study.h"

namespace spes::app {

struct SweepRun {
  scenarios::StudyRun plan;
  scenarios::Scenario scenario;
  std::string hash;  // scenarios::ScenarioHash
};

// Where a run stands, by the files that it has left.
enum class RunState { kWaiting, kRunning, kFinished, kFailed };

// The files of a study. A run that has finished has NAME.h5 and NAME.safetensors; while it is under
// way they are in a folder of their own, so that what has these names is whole. NAME.yaml is its
// scenario, NAME.txt what it said, and NAME.failed the reason why it did not finish.
class SweepFolder {
 public:
  explicit SweepFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  std::string Scenario(const SweepRun& run) const { return File(run.plan.name + ".yaml"); }
  std::string Text(const SweepRun& run) const { return File(run.plan.name + ".txt"); }
  std::string Log(const SweepRun& run) const { return File(run.plan.name + ".h5"); }
  std::string World(const SweepRun& run) const { return File(run.plan.name + ".safetensors"); }
  std::string UnfinishedLog(const SweepRun& run) const;
  std::string UnfinishedWorld(const SweepRun& run) const;

  // Makes it. Throws std::invalid_argument with one line.
  void Make() const;

  // Whether the log of exactly this scenario is there and complete.
  bool Finished(const SweepRun& run) const;
  // `failure`: becomes the reason where it failed; may be null.
  RunState State(const SweepRun& run, std::string* failure = nullptr) const;

  void SetFailure(const SweepRun& run, const std::string& why) const;
  void ForgetFailure(const SweepRun& run) const;

  // Removes temporary files that processes which were killed have left.
  void Clean() const;

 private:
  std::string Failure(const SweepRun& run) const { return File(run.plan.name + ".failed"); }

  std::string path_;
};

// An open file with a lock of its own, which ends when the last process that has it open ends.
class LockedFile {
 public:
  enum class Mode { kShared, kExclusive };

  // Opens or makes the file and locks it, waiting for at most `patience_ms`; locked() says whether
  // it could be. Throws std::invalid_argument with one line where the file cannot be opened.
  LockedFile(const std::string& path, Mode mode, int patience_ms);
  ~LockedFile();
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;

  bool locked() const { return locked_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  bool locked_ = false;
};

struct LoadedStudy {
  scenarios::Study study;
  std::vector<SweepRun> runs;
  SweepFolder folder;
};

// Reads a study and resolves its runs; of `index` alone where that is not negative. Throws
// std::invalid_argument with one line.
LoadedStudy LoadStudy(const std::string& path, int index = -1);

}  // namespace spes::app
