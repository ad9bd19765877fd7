// The journal and a node's store by what they have in common: rounds are written, and the newest
// one is read.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/checkpoint/state_samples.h"
#include "trainer/checkpoint/journal.h"
#include "trainer/checkpoint/node_store.h"

namespace spes::trainer {

// What was written: the same round can be written with different tags.
struct RoundEntry {
  std::int32_t round = 0;
  std::int64_t tag = 0;
  bool operator==(const RoundEntry&) const = default;
};
inline void PrintTo(const RoundEntry& entry, std::ostream* out) {
  *out << "round " << entry.round << " tag " << entry.tag;
}

class RoundStore {
 public:
  virtual ~RoundStore() = default;
  virtual void Write(const RoundEntry& entry) = 0;
  // The newest whole state, compared in full with what was written; damaged ones fail the test.
  virtual std::optional<RoundEntry> Newest() const = 0;
  virtual std::vector<std::int32_t> Rounds() const = 0;
  // A whole state.
  virtual RoundEntry Read(std::int32_t round) const = 0;
};

class JournalStore : public RoundStore {
 public:
  explicit JournalStore(const std::string& folder, FileSystem& files = FileSystem::Real(),
                        std::int64_t width = 3)
      : table_(StateTable(DType::kFloat32, width)), journal_(folder, {}, files) {}
  void Write(const RoundEntry& entry) override { journal_.Write(StateOf(entry)); }
  std::optional<RoundEntry> Newest() const override {
    std::vector<std::string> warnings;
    const std::optional<CoordinatorState> state = journal_.Newest(table_, warnings);
    EXPECT_EQ(warnings, std::vector<std::string>());
    if (!state) return {};
    return EntryOf(*state);
  }
  std::vector<std::int32_t> Rounds() const override { return journal_.Rounds(); }
  RoundEntry Read(std::int32_t round) const override {
    return EntryOf(journal_.Read(round, table_));
  }

 private:
  RoundEntry EntryOf(const CoordinatorState& state) const {
    const RoundEntry entry{state.round, state.step};
    EXPECT_EQ(Difference(state, StateOf(entry)), "");
    return entry;
  }
  CoordinatorState StateOf(const RoundEntry& entry) const {
    CoordinatorState state =
        SampleState(table_, entry.round, static_cast<std::uint64_t>(entry.tag));
    state.step = entry.tag;
    return state;
  }

  std::shared_ptr<const BlockTable> table_;
  Journal journal_;
};

class NodeStoreStore : public RoundStore {
 public:
  explicit NodeStoreStore(const std::string& folder, FileSystem& files = FileSystem::Real(),
                          std::int64_t width = 3)
      : bytes_(100 * static_cast<std::size_t>(width)),
        store_(
            folder, [](const std::string& line) { ADD_FAILURE() << line; }, files) {}
  void Write(const RoundEntry& entry) override { store_.Write(entry.round, TextOf(entry.tag)); }
  std::optional<RoundEntry> Newest() const override {
    const std::vector<std::int32_t> rounds = store_.Rounds();
    if (rounds.empty()) return {};
    return Read(rounds.front());
  }
  std::vector<std::int32_t> Rounds() const override { return store_.Rounds(); }
  RoundEntry Read(std::int32_t round) const override {
    const std::string text = store_.Read(round).value();
    const RoundEntry entry{round, std::stoll(text)};
    EXPECT_EQ(text, TextOf(entry.tag));
    return entry;
  }

 private:
  std::string TextOf(std::int64_t tag) const {
    std::string text = std::to_string(tag) + ":";
    text.resize(bytes_, static_cast<char>(tag));
    return text;
  }

  std::size_t bytes_;
  NodeStore store_;
};

// Makes one of them in a folder; a larger `width` makes for larger files.
struct StoreKind {
  const char* name;
  std::unique_ptr<RoundStore> (*open)(const std::string& folder, FileSystem& files,
                                      std::int64_t width);
};

template <class S>
std::unique_ptr<RoundStore> Open(const std::string& folder, FileSystem& files, std::int64_t width) {
  return std::make_unique<S>(folder, files, width);
}

// Tests that hold for both.
class StoreTest : public testing::TestWithParam<StoreKind> {};
inline const auto kStoreKinds = testing::Values(StoreKind{"Journal", Open<JournalStore>},
                                                StoreKind{"NodeStore", Open<NodeStoreStore>});
inline std::string NameOf(const testing::TestParamInfo<StoreKind>& each) { return each.param.name; }

}  // namespace spes::trainer
