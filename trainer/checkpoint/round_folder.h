// A folder with one file per round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/file_system.h"
#include "trainer/checkpoint/folder_lock.h"

namespace spes::trainer {

// Which files stay once a newer one is there.
struct Retention {
  int last = 2;   // so many of the newest
  int every = 0;  // and of these rounds, 0 among them; 0: none
};

// Throws std::invalid_argument, one line, unless last ≥ 1 and every ≥ 0.
void Validate(const Retention& retention);

// The files round-00000012`ending` of one folder, each written with AtomicFile. It belongs to this
// object as long as that lives (FolderLock).
//
// Laws, for whatever moment the process or the machine stops at:
// - A file is removed to save room only once a newer one is durable.
// - Files of later rounds than the one that is written are of a future that did not happen: whoever
//   writes has gone back. They are removed, durably, before the write. The other way round a stop
//   in between would leave the new file beside them, and the newest of the folder would not follow
//   from it. Until the write is done the newest one is of an earlier round, or the old one of this
//   round: all are states that were whole, and nobody has been told of the new one yet.
class RoundFolder {
 public:
  // Creates the folder where it is not there, locks it and removes what an interrupted write has
  // left. `ending` begins with a dot. Throws std::runtime_error, one line.
  RoundFolder(std::string path, std::string ending, FileSystem& files);

  const std::string& path() const { return path_; }
  FileSystem& files() const { return files_; }
  std::string FileOf(std::int32_t round) const;

  // Newest first, whether whole or damaged. Throws std::runtime_error, one line.
  std::vector<std::int32_t> Rounds() const;

  // Removes the files of rounds after this one, the latest first, and returns when that is durable.
  // Throws std::runtime_error, one line.
  void RemoveAfter(std::int32_t round);

  // What cannot be removed stays until the next time.
  void Apply(const Retention& retention);

 private:
  std::string path_, ending_;
  FileSystem& files_;
  FolderLock lock_;
  // Files may have gone without that being durable yet: after a process that ended in between, too.
  bool unsynced_ = true;
};

}  // namespace spes::trainer
