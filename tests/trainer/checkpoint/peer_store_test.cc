// What holds for every PeerStore, and what holds for the one on disk besides.
#include "trainer/protocol/peer_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/trainer/data/temporary_folder.h"
#include "trainer/checkpoint/memory_peer_store.h"
#include "trainer/checkpoint/node_store.h"

namespace spes::trainer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct PeerStoreKind {
  const char* name;
  std::unique_ptr<PeerStore> (*open)(const std::string& folder);
};
std::unique_ptr<PeerStore> OnDisk(const std::string& folder) {
  return std::make_unique<NodeStore>(folder,
                                     [](const std::string& line) { ADD_FAILURE() << line; });
}
std::unique_ptr<PeerStore> InMemory(const std::string&) {
  return std::make_unique<MemoryPeerStore>();
}

class PeerStoreTest : public testing::TestWithParam<PeerStoreKind> {
 protected:
  TemporaryFolder folder_;
  std::unique_ptr<PeerStore> store_ = GetParam().open(folder_.Path("node"));
};

INSTANTIATE_TEST_SUITE_P(, PeerStoreTest,
                         testing::Values(PeerStoreKind{"NodeStore", OnDisk},
                                         PeerStoreKind{"MemoryPeerStore", InMemory}),
                         [](const auto& each) { return std::string(each.param.name); });

TEST_P(PeerStoreTest, IsEmptyAtFirst) {
  EXPECT_THAT(store_->Rounds(), IsEmpty());
  EXPECT_FALSE(store_->Read(0));
}

TEST_P(PeerStoreTest, ReadsWhatWasWrittenToTheByte) {
  std::string all;
  for (int c = 0; c < 256; ++c) all.push_back(static_cast<char>(c));
  const std::string large(3 << 20, 'x');  // more than a piece
  for (const std::string& state : {std::string(), std::string(1, '\0'), all, large}) {
    store_->Write(4, state);
    EXPECT_EQ(store_->Read(4), state);
    EXPECT_THAT(store_->Rounds(), ElementsAre(4));
  }
}

TEST_P(PeerStoreTest, KeepsTheTwoNewestRounds) {
  store_->Write(0, "a");
  EXPECT_THAT(store_->Rounds(), ElementsAre(0));
  store_->Write(1, "b");
  EXPECT_THAT(store_->Rounds(), ElementsAre(1, 0));
  store_->Write(5, "c");  // a round may be missing
  EXPECT_THAT(store_->Rounds(), ElementsAre(5, 1));
  EXPECT_EQ(store_->Read(5), "c");
  EXPECT_EQ(store_->Read(1), "b");
  EXPECT_FALSE(store_->Read(0));
  EXPECT_FALSE(store_->Read(-1));
  EXPECT_FALSE(store_->Read(6));
}

TEST_P(PeerStoreTest, ARoundThatIsDoneAgainTakesThePlaceOfTheOldOne) {
  store_->Write(3, "a");
  store_->Write(4, "b");
  store_->Write(4, "c");
  EXPECT_THAT(store_->Rounds(), ElementsAre(4, 3));
  EXPECT_EQ(store_->Read(4), "c");
  EXPECT_EQ(store_->Read(3), "a");
}

TEST_P(PeerStoreTest, WhatFollowedARoundThatIsDoneAgainIsForgotten) {
  store_->Write(3, "a");
  store_->Write(4, "b");
  store_->Write(3, "c");
  EXPECT_THAT(store_->Rounds(), ElementsAre(3));
  EXPECT_EQ(store_->Read(3), "c");
  EXPECT_FALSE(store_->Read(4));
  store_->Write(4, "d");
  store_->Write(5, "e");
  store_->Write(1, "f");
  EXPECT_THAT(store_->Rounds(), ElementsAre(1));
}

class NodeStoreTest : public testing::Test {
 protected:
  std::unique_ptr<NodeStore> Open() {
    return std::make_unique<NodeStore>(
        folder_.Path("node"), [this](const std::string& line) { warnings_.push_back(line); });
  }
  TemporaryFolder folder_;
  std::string file_ = folder_.Path("node/round-00000002.state");
  std::vector<std::string> warnings_;
};

TEST_F(NodeStoreTest, OutlivesItsProcess) {
  Open()->Write(2, "state");
  std::filesystem::rename(folder_.Path("node"), folder_.Path("moved"));
  std::filesystem::rename(folder_.Path("moved"), folder_.Path("node"));
  EXPECT_EQ(Open()->Read(2), "state");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(NodeStoreTest, NoByteChangesUnnoticed) {
  const auto store = Open();
  store->Write(1, "whole");
  store->Write(2, "a state of some length");
  const std::string whole = folder_.Read("node/round-00000002.state");
  const auto left_out = [&](const std::string& content) {
    folder_.Write("node/round-00000002.state", content);
    warnings_.clear();
    return !store->Read(2) && warnings_.size() == 1 &&
           warnings_[0].starts_with(file_ + ": is damaged: ");
  };
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string content = whole;
    content[at] = static_cast<char>(content[at] ^ (1 << at % 8));
    EXPECT_TRUE(left_out(content)) << at;
    EXPECT_TRUE(left_out(whole.substr(0, at))) << at;
  }
  EXPECT_TRUE(left_out(whole + "x"));
  EXPECT_FALSE(left_out(whole));
  EXPECT_THAT(store->Rounds(), ElementsAre(2, 1));
  EXPECT_EQ(store->Read(1), "whole");
}

// Another round's state under this round's name.
TEST_F(NodeStoreTest, ARenamedStateIsLeftOut) {
  const auto store = Open();
  store->Write(2, "state");
  std::filesystem::rename(file_, folder_.Path("node/round-00000003.state"));
  EXPECT_FALSE(store->Read(3));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no state of round 3")));
}

TEST_F(NodeStoreTest, OneAtATimeAndAFolderThatCannotBeUsedIsNamed) {
  const auto store = Open();
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { Open(); }),
              StartsWith(folder_.Path("node") + ": is in use by process "));
  folder_.Write("file", "");
  EXPECT_THAT(MessageOf<std::runtime_error>(
                  [&] { NodeStore other(folder_.Path("file"), [](const std::string&) {}); }),
              StartsWith(folder_.Path("file") + ": "));
}

}  // namespace
}  // namespace spes::trainer
