#include "trainer/checkpoint/round_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace spes::trainer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStart = "round-";

std::string NameOf(std::int32_t round, const std::string& ending) {
  return fmt::format("{}{:08}{}", kStart, round, ending);
}

// The round that a file of this name holds; nothing where it is not one of ours.
std::optional<std::int32_t> RoundOf(const std::string& name, const std::string& ending) {
  if (!name.starts_with(kStart)) return {};
  std::int32_t round = -1;
  std::from_chars(name.data() + kStart.size(), name.data() + name.size(), round);
  if (round < 0 || name != NameOf(round, ending)) return {};
  return round;
}

[[noreturn]] void Fail(const std::string& path, const char* what, int error) {
  throw std::runtime_error(fmt::format("{}: cannot be {}: {}", path, what, std::strerror(error)));
}

// Its own name is durable too.
std::string Created(std::string path, FileSystem& files) {
  std::error_code error;
  std::vector<fs::path> absent;
  for (fs::path p = fs::absolute(path, error); !p.empty() && !fs::exists(p, error);) {
    absent.push_back(p);
    p = p.parent_path();
  }
  fs::create_directories(path, error);
  if (error) Fail(path, "created", error.value());
  if (!fs::is_directory(path, error)) throw std::runtime_error(path + ": is not a folder");
  for (const fs::path& p : absent) {
    if (!SyncFolder(files, p.parent_path())) Fail(path, "created", errno);
  }
  return path;
}

// Calls f(name) of every file.
template <class F>
void ForEachFile(const std::string& path, F f) {
  std::error_code error;
  fs::directory_iterator each(path, error);
  for (; !error && each != fs::directory_iterator(); each.increment(error)) {
    f(each->path().filename().string());
  }
  if (error) Fail(path, "read", error.value());
}

}  // namespace

void Validate(const Retention& retention) {
  if (retention.last < 1) {
    throw std::invalid_argument(
        fmt::format("{} of the newest rounds are to be kept; at least 1", retention.last));
  }
  if (retention.every < 0) {
    throw std::invalid_argument(fmt::format(
        "each {}th round is to be kept; 0 for none, or a positive number", retention.every));
  }
}

RoundFolder::RoundFolder(std::string path, std::string ending, FileSystem& files)
    : path_(Created(std::move(path), files)),
      ending_(std::move(ending)),
      files_(files),
      lock_(path_) {
  std::vector<std::string> left;
  ForEachFile(path_, [&](const std::string& name) {
    if (RoundOf(name, ending_ + ".tmp")) left.push_back(path_ + "/" + name);
  });
  for (const std::string& file : left) {
    if (files_.Remove(file) != 0) Fail(file, "removed", errno);
  }
}

std::string RoundFolder::FileOf(std::int32_t round) const {
  return path_ + "/" + NameOf(round, ending_);
}

std::vector<std::int32_t> RoundFolder::Rounds() const {
  std::vector<std::int32_t> rounds;
  ForEachFile(path_, [&](const std::string& name) {
    if (const auto round = RoundOf(name, ending_)) rounds.push_back(*round);
  });
  std::ranges::sort(rounds, std::greater<>());
  return rounds;
}

void RoundFolder::RemoveAfter(std::int32_t round) {
  for (const std::int32_t each : Rounds()) {
    if (each <= round) break;
    unsynced_ = true;
    if (files_.Remove(FileOf(each)) != 0) Fail(FileOf(each), "removed", errno);
  }
  if (!unsynced_) return;
  if (!SyncFolder(files_, path_)) Fail(path_, "synced", errno);
  unsynced_ = false;
}

void RoundFolder::Apply(const Retention& retention) {
  int newer = 0;
  for (const std::int32_t round : Rounds()) {
    const bool kept =
        newer++ < retention.last || (retention.every > 0 && round % retention.every == 0);
    if (!kept) files_.Remove(FileOf(round));
  }
}

}  // namespace spes::trainer
