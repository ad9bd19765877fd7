#include "trainer/checkpoint/node_store.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "trainer/checkpoint/atomic_file.h"

namespace spes::trainer {
namespace {

constexpr std::string_view kMark = "spes-node-1\n";
constexpr std::size_t kHeadBytes = kMark.size() + sizeof(std::int32_t) + sizeof(std::uint64_t);
constexpr Retention kTwo = {.last = 2, .every = 0};

std::string Head(std::int32_t round, std::uint64_t length) {
  std::string head(kMark);
  head.append(reinterpret_cast<const char*>(&round), sizeof(round));
  head.append(reinterpret_cast<const char*>(&length), sizeof(length));
  return head;
}

class Checksum {
 public:
  Checksum() : state_(XXH3_createState()) { XXH3_64bits_reset(state_.get()); }
  void Add(std::string_view text) { XXH3_64bits_update(state_.get(), text.data(), text.size()); }
  std::uint64_t Value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

// What is wrong with the file; empty when it is whole, and its content is in `state`.
std::string ReadFile(const std::string& path, std::int32_t round, std::string& state) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return std::string("cannot be read: ") + std::strerror(errno);
  constexpr auto kAround = static_cast<std::int64_t>(kHeadBytes + sizeof(std::uint64_t));
  const std::int64_t length = static_cast<std::int64_t>(in.tellg()) - kAround;
  in.seekg(0);
  std::string head(kHeadBytes, '\0');
  if (length < 0 || !in.read(head.data(), kHeadBytes) ||
      head != Head(round, static_cast<std::uint64_t>(length))) {
    return fmt::format("is damaged: it is no state of round {} of its length", round);
  }
  Checksum checksum;
  checksum.Add(head);
  state.resize(static_cast<std::size_t>(length));
  if (!in.read(state.data(), length)) return "is damaged: it cannot be read to its end";
  checksum.Add(state);
  std::uint64_t expected = 0;
  if (!in.read(reinterpret_cast<char*>(&expected), sizeof(expected)) ||
      checksum.Value() != expected) {
    return "is damaged: it does not give its checksum";
  }
  return "";
}

}  // namespace

NodeStore::NodeStore(std::string folder, std::function<void(const std::string&)> warn,
                     FileSystem& files)
    : folder_(std::move(folder), ".state", files), warn_(std::move(warn)) {}

void NodeStore::Write(std::int32_t round, const StateBytes& state) {
  folder_.RemoveAfter(round);
  AtomicFile file(folder_.FileOf(round), folder_.files());
  Checksum checksum;
  const auto put = [&](std::span<const std::byte> bytes) {
    checksum.Add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    file.Write(bytes.data(), bytes.size());
  };
  const std::string head = Head(round, state.size());
  put(std::as_bytes(std::span(head)));
  state.ForEach(put);
  const std::uint64_t value = checksum.Value();
  file.Write(&value, sizeof(value));
  file.Commit();
  folder_.Apply(kTwo);
}

std::vector<std::int32_t> NodeStore::Rounds() const { return folder_.Rounds(); }

std::optional<std::string> NodeStore::Read(std::int32_t round) const {
  const std::vector<std::int32_t> there = folder_.Rounds();
  if (std::ranges::find(there, round) == there.end()) return {};
  const std::string path = folder_.FileOf(round);
  std::string state;
  const std::string wrong = ReadFile(path, round, state);
  if (wrong.empty()) return state;
  warn_(path + ": " + wrong);
  return {};
}

}  // namespace spes::trainer
