// System calls on real files that also keep book of what would be left if the power went.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/file_system.h"

namespace spes::trainer {

// Where no power will go, syncing only costs time.
class UnsyncedFiles : public FileSystem {
 public:
  int Sync(int) override { return 0; }
};

// The least that POSIX promises. Bytes of a file are kept once it has been synced; before, any
// beginning of them, or zeros in their place. Names that have come, gone or changed are kept once
// the folder has been synced; before, any of the changes may have been kept and any not, but a
// rename is one change. For one flat folder that is empty at first.
class PowerCutFiles : public UnsyncedFiles {
 public:
  int cut_at = std::numeric_limits<int>::max();  // this call, by number, does nothing, nor do later
  int calls = 0;                                 // so far

  int Open(const std::string& path, int flags) override {
    if (Cut()) return -1;
    const int fd = FileSystem::Open(path, flags);
    if (fd < 0 || (flags & O_DIRECTORY) != 0) return fd;
    if ((flags & O_TRUNC) != 0) names_[path] = std::make_shared<File>();
    pending_.push_back({{path, names_.at(path)}});
    open_[fd] = names_.at(path);
    return fd;
  }
  std::int64_t Write(int file, const void* data, std::size_t bytes) override {
    // One after the other they are one call: any beginning of all is what may be left anyway.
    if (!std::exchange(writing_, true)) ++calls;
    if (calls > cut_at) return Failed();
    open_.at(file)->content.append(static_cast<const char*>(data), bytes);
    return FileSystem::Write(file, data, bytes);
  }
  int Sync(int file) override {
    if (Cut()) return -1;
    if (const auto found = open_.find(file); found != open_.end()) {
      found->second->synced = found->second->content;
    } else {
      for (const Change& change : pending_) Apply(change, durable_);
      pending_.clear();
    }
    return 0;
  }
  int Close(int file) override {
    FileSystem::Close(file);
    if (Cut()) return -1;
    open_.erase(file);
    return 0;
  }
  int Rename(const std::string& from, const std::string& to) override {
    if (Cut()) return -1;
    pending_.push_back({{from, nullptr}, {to, names_.at(from)}});
    Apply(pending_.back(), names_);
    return FileSystem::Rename(from, to);
  }
  int Remove(const std::string& path) override {
    if (Cut()) return -1;
    pending_.push_back({{path, nullptr}});
    Apply(pending_.back(), names_);
    return FileSystem::Remove(path);
  }

  // One of the states in which the folder may be found afterwards, written to another folder.
  void LeaveIn(const std::string& folder, std::mt19937& random) const {
    std::map<std::string, std::shared_ptr<File>> names = durable_;
    for (const Change& change : pending_) {
      if (random() % 2 == 0) Apply(change, names);
    }
    std::filesystem::create_directory(folder);
    for (const auto& [path, file] : names) {
      const std::filesystem::path name = std::filesystem::path(path).filename();
      std::ofstream(std::filesystem::path(folder) / name, std::ios::binary) << Left(*file, random);
    }
  }

 private:
  struct File {
    std::string content, synced;
  };
  // Names and the files that they get; null: none.
  using Change = std::vector<std::pair<std::string, std::shared_ptr<File>>>;

  bool Cut() {
    writing_ = false;
    return ++calls > cut_at && Failed() < 0;
  }
  static int Failed() {
    errno = EIO;
    return -1;
  }
  static void Apply(const Change& change, std::map<std::string, std::shared_ptr<File>>& names) {
    for (const auto& [path, file] : change) {
      if (file) {
        names[path] = file;
      } else {
        names.erase(path);
      }
    }
  }
  static std::string Left(const File& file, std::mt19937& random) {
    if (file.synced == file.content) return file.content;
    switch (random() % 3) {
      case 0:
        return file.synced;
      case 1:
        return file.content.substr(0, random() % (file.content.size() + 1));
      default:
        return std::string(file.content.size(), '\0');
    }
  }

  bool writing_ = false;
  std::map<int, std::shared_ptr<File>> open_;
  std::map<std::string, std::shared_ptr<File>> names_,
      durable_;                  // as they look; as they would last
  std::vector<Change> pending_;  // since the folder was synced
};

}  // namespace spes::trainer
