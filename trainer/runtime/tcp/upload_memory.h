// Where the values of uploads lie until the protocol has let go of them.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "trainer/wire/message_codec.h"

namespace spes::trainer {

// There is no room for an upload. One line.
class NoRoomError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The first few in ordinary memory; those beyond in files without a name, mapped: the system writes
// them out when it needs the room, and Trim makes sure that they do not count as this process's.
class UploadMemory {
 public:
  // `spool`: the folder for files, made where it is absent. Throws std::invalid_argument, one line,
  // where it cannot be written to; empty: everything is in ordinary memory.
  UploadMemory(int in_memory, std::string spool);
  ~UploadMemory();

  // For one upload. What it gives may outlive this object. Both throw NoRoomError: the disk or the
  // memory is full, or no file can be opened.
  Allocate ForUpload();
  // For what an upload's codes are read into: likewise, or ordinary memory where there is no room.
  Allocate ForDecoding();

  // Uploads in ordinary memory and in files of which something is still held.
  int in_memory() const;
  int in_files() const;

  // Lets go of the pages of all files that are in this process's memory. Cheap; reading maps them
  // again.
  void Trim() const;

 private:
  class Spooled;
  struct State;

  int in_memory_;
  std::string spool_;
  std::shared_ptr<State> state_;
};

}  // namespace spes::trainer
