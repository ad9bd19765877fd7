// Whose place a newcomer gets when all gates are taken.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tests/trainer/runtime/tcp/frame_bytes.h"
#include "tests/trainer/runtime/tcp/memory_stream.h"
#include "tests/trainer/runtime/tcp/raw_socket.h"
#include "trainer/runtime/tcp/gates.h"

namespace spes::trainer {
namespace {

class GatesTest : public testing::Test, public Gate::Keeper {
 protected:
  ~GatesTest() override { gates.Shut(); }

  // False: there is no room for it.
  bool Open(const std::string& network, const std::string& host) {
    if (!gates.HasRoom(host, network)) return false;
    ends.push_back(std::make_shared<MemoryEnd>(loop.io()));
    auto gate = std::make_shared<Gate>(*this, "", 600);
    gate->Open(std::make_shared<Connection>(
        loop.io(), std::make_unique<MemoryStream>(ends.back(), host), gate));
    gates.Add(std::move(gate), network);
    return true;
  }
  // Each of another host of the network.
  void Fill(const std::string& network, int count) {
    for (int i = 0; i < count; ++i) {
      ASSERT_TRUE(Open(network, network + " " + std::to_string(hosts++)));
    }
  }
  // The last one that was opened has what members have.
  void Prove() {
    ends.back()->Say(FrameBytes(FrameType::kHello, 0, Encode(GoodHello(0))) +
                     FrameBytes(FrameType::kProof, 0, Encode(Proof{})));
    const int before = judged;
    loop.RunUntil([&] { return judged > before; }, Seconds(20));
  }
  // Which of the ends have been closed, in the order in which they were opened.
  std::vector<std::size_t> Closed() const {
    std::vector<std::size_t> closed;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      if (ends[i]->closed()) closed.push_back(i);
    }
    return closed;
  }

  std::variant<Gate::LetIn, std::monostate, Refuse> Judge(const Connection&, Request&) override {
    ++judged;
    return std::monostate();
  }
  void OnTurnedAway(const Connection&, Refusals::Kind kind, NodeId, const std::string&) override {
    EXPECT_EQ(kind, Refusals::Kind::kFlood);
    ++turned_away;
  }

  ComputePool pool{1};
  Loop loop{pool};
  std::vector<std::shared_ptr<MemoryEnd>> ends;
  int hosts = 0, judged = 0, turned_away = 0;
  Gates gates;
};

using Ends = std::vector<std::size_t>;

TEST_F(GatesTest, TheOldestStrangerOfTheLargestNetworkGivesWay) {
  Fill("small", 1);
  Fill("large", 200);
  Fill("other", Gates::kMost - 201);
  EXPECT_EQ(Closed(), Ends());
  EXPECT_TRUE(Open("new", "new"));
  EXPECT_TRUE(Open("small", "small"));
  EXPECT_EQ(Closed(), Ends({1, 2}));
  EXPECT_EQ(turned_away, 2);
}

TEST_F(GatesTest, TheLargestNetworkDoesNotPushOutOthers) {
  Fill("small", 1);
  Fill("large", Gates::kMost - 1);
  EXPECT_FALSE(Open("large", "another"));
  EXPECT_EQ(Closed(), Ends());
}

TEST_F(GatesTest, WhoIsProvenStays) {
  Fill("large", 1);
  Prove();
  Fill("large", Gates::kMost - 1);
  EXPECT_TRUE(Open("new", "new"));
  EXPECT_EQ(Closed(), Ends({1}));
}

TEST_F(GatesTest, NoAddressHasMoreThanItsOwn) {
  for (int i = 0; i < Gates::kMostOfOne; ++i) EXPECT_TRUE(Open("network", "host"));
  EXPECT_FALSE(Open("network", "host"));
  EXPECT_TRUE(Open("network", "its neighbour"));
  EXPECT_EQ(Closed(), Ends());
}

TEST_F(GatesTest, WhenAllAreProvenThereIsNoRoom) {
  for (int i = 0; i < Gates::kMost; ++i) {
    Fill("a", 1);
    Prove();
  }
  EXPECT_FALSE(Open("new", "new"));
}

}  // namespace
}  // namespace spes::trainer
