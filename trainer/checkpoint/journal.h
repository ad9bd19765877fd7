// The coordinator's journal: its state after each round, on disk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/round_folder.h"
#include "trainer/protocol/coordinator_state.h"

namespace spes::trainer {

// One file per round (coordinator_file.h) in a folder of its own; what holds at whatever moment a
// write is interrupted is said in round_folder.h. The folder may be moved while no journal is open
// on it. Called from one thread at a time.
class Journal {
 public:
  // Creates the folder where it is not there; one journal per folder at a time, over all processes.
  // `files` must outlive the journal. Throws std::invalid_argument on a wrong retention and
  // std::runtime_error, one line, where the folder cannot be used or is in use.
  explicit Journal(std::string folder, Retention retention = {},
                   FileSystem& files = FileSystem::Real());

  // Durable once this returns; then older files go as the retention says. Those of later rounds go
  // first: see RoundFolder. Throws std::runtime_error, one line, when it cannot be written: the
  // files of other rounds stay as they were, but for those of later ones, and the round's own file
  // is the old one, or absent, or the new one, whole. Throws std::invalid_argument on a state that
  // does not fit its table.
  void Write(const CoordinatorState& state);

  // Of all files, newest first, whether whole or damaged. Throws std::runtime_error, one line.
  std::vector<std::int32_t> Rounds() const;

  // The state after `round`, equal to what was written to the last bit. Throws DamagedFile (a
  // std::invalid_argument) where the file is not what was written, std::invalid_argument where it
  // holds something else than a state of this table, std::runtime_error where it is absent; one
  // line each.
  CoordinatorState Read(std::int32_t round, std::shared_ptr<const BlockTable> table) const;

  // The newest state whose file is whole. Each damaged one that is newer adds a line to `warnings`;
  // no file is changed. Nothing where no file is whole: where Rounds() has some all the same, a run
  // must not begin anew over them without being told to. Throws as Read does on a whole file of
  // another model.
  std::optional<CoordinatorState> Newest(const std::shared_ptr<const BlockTable>& table,
                                         std::vector<std::string>& warnings) const;

 private:
  Retention retention_;
  RoundFolder folder_;
};

}  // namespace spes::trainer
