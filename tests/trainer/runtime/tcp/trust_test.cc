// Who is let in, and what the others are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "tests/trainer/runtime/tcp/endpoint.h"
#include "tests/trainer/runtime/tcp/key_ring.h"
#include "tests/trainer/runtime/tcp/payloads.h"
#include "tests/trainer/runtime/tcp/raw_socket.h"
#include "trainer/runtime/tcp/key_files.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A coordinator with this security, and why a node with that one does not get in.
struct Attempt {
  TestServer server;
  std::string why;
  Attempt(TcpSecurity coordinator, TcpSecurity node,
          const std::function<void(TcpServeConfig&, TcpJoinConfig&)>& change = {})
      : Attempt(Configs(std::move(coordinator), std::move(node), change)) {}

 private:
  using Pair = std::pair<TcpServeConfig, TcpJoinConfig>;
  static Pair Configs(TcpSecurity coordinator, TcpSecurity node,
                      const std::function<void(TcpServeConfig&, TcpJoinConfig&)>& change) {
    Pair configs{TestServer::Config(3), TestNode::Config("", 1)};
    configs.first.security = std::move(coordinator);
    configs.second.security = std::move(node);
    if (change) change(configs.first, configs.second);
    return configs;
  }
  explicit Attempt(Pair configs) : server(configs.first, TableOf(1, 1)) {
    auto address = server.address();
    if (!configs.second.address.empty()) {  // another name for the same host
      address = configs.second.address + address.substr(address.rfind(':'));
    }
    configs.second.address = address;
    why = WhyNot(configs.second, TableOf(1, 1));
  }
};

TEST(Trust, TheTokenMustBeTheCoordinators) {
  Attempt wrong(NoTls("right"), NoTls("wrong"));
  EXPECT_THAT(wrong.why, AllOf(HasSubstr("the token is not the coordinator's"),
                               HasSubstr(wrong.server.address())));
  EXPECT_THAT(wrong.server.Events("refused"), ElementsAre("127.0.0.1: it does not have the token"));
  Attempt none(NoTls("right"), NoTls());
  EXPECT_THAT(none.why, HasSubstr("asks for a token"));
  Attempt tls(KeyRing::Coordinator("right"), KeyRing::Node("wrong"));
  EXPECT_THAT(tls.why, HasSubstr("the token is not the coordinator's"));
}

TEST(Trust, ACoordinatorWithoutTheTokenIsNoCoordinator) {
  Attempt attempt(NoTls(), NoTls("secret"));
  EXPECT_THAT(attempt.why, HasSubstr("does not have the token: it is not the coordinator"));
}

TEST(Trust, WhoIsNotLetInLearnsNothingElse) {
  auto serve = TestServer::Config(1);
  serve.security = NoTls("right");
  TestServer server(serve, TableOf(1, 1));
  Hello hello = GoodHello(7);  // no such node
  hello.scenario_hash = "another";
  hello.clock_us = 0;
  RawSocket socket(server.address());
  socket.Say(FrameBytes(FrameType::kHello, 0, Encode(hello)));
  FrameType type;
  ASSERT_TRUE(socket.Frame(&type));
  EXPECT_EQ(type, FrameType::kChallenge);
  socket.Say(FrameBytes(FrameType::kProof, 0, Encode(Proof{})));
  const auto answer = socket.Frame(&type);
  ASSERT_TRUE(answer);
  EXPECT_EQ(type, FrameType::kRefuse);
  EXPECT_EQ(DecodeRefuse(*answer), (Refuse{RefuseCode::kNotLetIn, true, ""}));
  EXPECT_EQ(socket.Hear(), "");
}

TEST(Trust, AProofCannotBeUsedAgain) {
  auto serve = TestServer::Config(1);
  serve.security = NoTls("right");
  TestServer server(serve, TableOf(1, 1));
  const Hello hello = GoodHello(0);
  Transcript said{Encode(hello), {}, {}};
  RawSocket first(server.address());
  first.Say(FrameBytes(FrameType::kHello, 0, said.hello));
  said.challenge = first.Frame().value();
  const std::string proof =
      FrameBytes(FrameType::kProof, 0, Encode(Proof{NodeProof("right", said)}));
  RawSocket second(server.address());  // the same words, but another challenge
  second.Say(FrameBytes(FrameType::kHello, 0, said.hello));
  EXPECT_NE(second.Frame(), said.challenge);
  second.Say(proof);
  FrameType type;
  ASSERT_TRUE(second.Frame(&type));
  EXPECT_EQ(type, FrameType::kRefuse);
  first.Say(proof);
  ASSERT_TRUE(first.Frame(&type));
  EXPECT_EQ(type, FrameType::kWelcome);
}

TEST(Trust, ASessionIsOnlyForWhoKnowsItsNumber) {
  TestServer server(TestServer::Config(1), TableOf(1, 1));
  TestNode node(TestNode::Config(server.address(), 0), TableOf(1, 1));
  Hello hello = GoodHello(0);
  hello.role = ConnectionRole::kBulk;
  hello.session[3] = std::byte{1};
  RawSocket socket(server.address());
  EXPECT_FALSE(socket.ShakeHands(hello));
  node.Send(kCoordinator, Applied{});
  EXPECT_TRUE(server.UntilGot(1));
}

TEST(Trust, CertificatesOfTheCoordinatorAreCheckedAndTheReasonIsNamed) {
  const auto why = [](const std::string& folder, const std::string& authority) {
    TcpSecurity node = KeyRing::Node("t");
    node.authority = authority + "/authority.pem";
    return Attempt(KeyRing::Coordinator("t", folder), node).why;
  };
  EXPECT_THAT(why(KeyRing::Expired(), KeyRing::Expired()),
              HasSubstr("the certificate \"spes-sim authority\" expired on 2009-12-29"));
  EXPECT_THAT(why(KeyRing::Future(), KeyRing::Future()),
              HasSubstr("is not valid before 2098-12-31"));
  EXPECT_THAT(why(KeyRing::Elsewhere(), KeyRing::Elsewhere()),
              HasSubstr("the certificate \"spes-sim coordinator\" is for trainer.example, not for "
                        "127.0.0.1"));
  EXPECT_THAT(why(KeyRing::Strangers(), KeyRing::Folder()),
              AllOf(HasSubstr("was signed by an authority that is not that of"),
                    HasSubstr(KeyRing::Folder() + "/authority.pem")));
  EXPECT_EQ(why(KeyRing::Folder(), KeyRing::Folder()), "");
}

TEST(Trust, ACertificateIsForTheNameThatWasDialled) {
  const auto why = [](const std::string& host) {
    return Attempt(KeyRing::Coordinator("t"), KeyRing::Node("t"),
                   [&](TcpServeConfig& serve, TcpJoinConfig& join) {
                     serve.address = "0.0.0.0:0";
                     join.address = host;
                   })
        .why;
  };
  EXPECT_EQ(why("localhost"), "");
  EXPECT_THAT(why("127.0.0.2"), HasSubstr("not for 127.0.0.2"));
}

TEST(Trust, ANodesCertificateCannotStandForTheCoordinators) {
  TcpSecurity coordinator = KeyRing::MutualNode(0);
  coordinator.token = "t";
  EXPECT_THAT(Attempt(coordinator, KeyRing::Node("t")).why, HasSubstr("spes-sim node 0"));
}

TEST(Trust, CertificatesOfNodesAreChecked) {
  const auto why = [](const TcpSecurity& node) {
    return Attempt(KeyRing::MutualCoordinator(), node).why;
  };
  EXPECT_EQ(why(KeyRing::MutualNode(1)), "");
  EXPECT_THAT(why(KeyRing::Node("")), HasSubstr("asks for a certificate, and none was shown"));
  EXPECT_THAT(why(KeyRing::MutualNode(2)),
              HasSubstr("node 1 was asked for with the certificate of node 2"));
  TcpSecurity stranger = KeyRing::MutualNode(1, KeyRing::Strangers());
  stranger.authority = KeyRing::Folder() + "/authority.pem";
  EXPECT_THAT(why(stranger), HasSubstr("does not take this side's certificate"));
}

TEST(Trust, TheCoordinatorsLogSaysWhatIsWrongWithANodesCertificate) {
  TcpSecurity coordinator = KeyRing::MutualCoordinator();
  coordinator.authority = KeyRing::Expired() + "/authority.pem";
  TcpSecurity node = KeyRing::MutualNode(1, KeyRing::Expired());
  node.authority = KeyRing::Folder() + "/authority.pem";
  Attempt attempt(coordinator, node);
  EXPECT_THAT(attempt.why, HasSubstr("it has expired"));
  EXPECT_THAT(attempt.server.Events("dropped"), Contains(HasSubstr("expired on 2009-12-29")));
}

TEST(Trust, WithoutAWishACertificateSaysWhichNodeItIs) {
  auto serve = TestServer::Config(3);
  serve.security = KeyRing::MutualCoordinator();
  TestServer server(serve, TableOf(1, 1));
  auto join = TestNode::Config(server.address());
  join.security = KeyRing::MutualNode(2);
  TestNode node(join, TableOf(1, 1));
  EXPECT_EQ(node.client().node(), 2);
}

TEST(Trust, WhoAnswersInTheCoordinatorsPlaceDoesNotEndANodeThatIsUnderWay) {
  auto serve = TestServer::Config(1);
  serve.security = KeyRing::Coordinator("secret");
  auto join = TestNode::Config("", 0);
  join.security = KeyRing::Node("secret");
  auto coordinator = std::make_unique<TestServer>(serve, TableOf(1, 1));
  serve.address = join.address = coordinator->address();
  TestNode node(join, TableOf(1, 1));
  coordinator.reset();
  {
    auto other = serve;
    other.security = KeyRing::Coordinator("secret", KeyRing::Strangers());
    TestServer impostor(other, TableOf(1, 1));
    ASSERT_TRUE(node.UntilEvent("unreachable"));
    while (node.Events("unreachable").back().find("signed") == std::string::npos) {
      ASSERT_FALSE(node.ended);
    }
  }
  TestServer again(serve, TableOf(1, 1));
  EXPECT_TRUE(node.Until([&] { return node.ended || !node.renewed.empty(); }));
  EXPECT_FALSE(node.ended);
}

TEST(Trust, AClockThatIsWrongForAWhileDoesNotEndANodeThatIsUnderWay) {
  auto serve = TestServer::Config(1);
  auto coordinator = std::make_unique<TestServer>(serve, TableOf(1, 1));
  serve.address = coordinator->address();
  TestNode node(TestNode::Config(serve.address, 0), TableOf(1, 1));
  coordinator.reset();
  {
    auto wrong = serve;
    wrong.options.clock_difference = Seconds(1e-9);  // less than it takes to say what time it is
    TestServer other(wrong, TableOf(1, 1));
    ASSERT_TRUE(node.UntilEvent("unreachable"));
    while (node.Events("unreachable").back().find("the node's clock is") == std::string::npos) {
      ASSERT_FALSE(node.ended);
    }
  }
  TestServer again(serve, TableOf(1, 1));
  EXPECT_TRUE(node.Until([&] { return node.ended || !node.renewed.empty(); }));
  EXPECT_FALSE(node.ended);
}

TEST(Trust, ANodeWhoseCertificateNobodyAsksForSaysSo) {
  for (const bool mutual : {false, true}) {
    auto serve = TestServer::Config(3);
    serve.security = KeyRing::MutualCoordinator();
    serve.security.ask_certificate = mutual;
    serve.security.token = "t";
    TestServer server(serve, TableOf(1, 1));
    auto join = TestNode::Config(server.address(), 2);
    join.security = KeyRing::MutualNode(2);
    join.security.token = "t";
    TestNode node(join, TableOf(1, 1));
    EXPECT_EQ(node.Events("certificate").size(), mutual ? 0u : 1u);
  }
}

TEST(Trust, TlsHereAndNoneThere) {
  Attempt asks(KeyRing::Coordinator("t"), NoTls("t"));
  EXPECT_THAT(asks.why, AllOf(HasSubstr("the coordinator asks for TLS"),
                              HasSubstr("--set transport.tls=on")));
  // The other way round it may be anything: the node goes on trying, and says so.
  auto serve = TestServer::Config(1);
  TestServer server(serve, TableOf(1, 1));
  auto join = TestNode::Config(server.address(), 0);
  join.security = KeyRing::Node("t");
  std::atomic<bool> stop = false;
  std::vector<std::string> waited;
  ComputePool pool(1);
  MemoryRecorder recorder;
  EXPECT_EQ(JoinTcp(join, TableOf(1, 1), pool, recorder, stop,
                    [&](const std::string& why) {
                      waited.push_back(why);
                      stop = true;
                    }),
            nullptr);
  EXPECT_THAT(waited, ElementsAre(HasSubstr("has the coordinator TLS? transport.tls is on here")));
}

TEST(Trust, ScenariosMustBeTheSameAndTheDifferenceIsNamedOnBothSides) {
  Attempt attempt(NoTls("t"), NoTls("t"), [](TcpServeConfig&, TcpJoinConfig& join) {
    join.scenario.hash = "5678";
    join.scenario.text = "model: large";
  });
  EXPECT_THAT(attempt.why, HasSubstr("the coordinator has model: small?, the node model: large"));
  ASSERT_TRUE(attempt.server.UntilEvent("refused"));
  EXPECT_THAT(attempt.server.Events("refused"),
              ElementsAre(AllOf(HasSubstr("its scenario is not the coordinator's: the coordinator "
                                          "has model: small"),
                                HasSubstr("the node model: large"))));
}

TEST(Trust, ClocksMustNotBeFarApart) {
  auto serve = TestServer::Config(2);
  TestServer server(serve, TableOf(1, 1));
  for (const std::int64_t hours : {1, -1}) {
    Hello hello = GoodHello(0);
    hello.clock_us += hours * 3'600'000'000;
    Transcript said{Encode(hello), {}, {}};
    RawSocket socket(server.address());
    socket.Say(FrameBytes(FrameType::kHello, 0, said.hello));
    said.challenge = socket.Frame().value();
    socket.Say(FrameBytes(FrameType::kProof, 0, Encode(Proof{NodeProof("", said)})));
    const Refuse refuse = DecodeRefuse(socket.Frame().value());
    EXPECT_EQ(refuse.code, RefuseCode::kClocks);
    EXPECT_TRUE(refuse.permanent);
    EXPECT_THAT(refuse.text,
                testing::MatchesRegex("the node's clock is 3(600|599) s (ahead of|behind) "
                                      "the coordinator's; at most 300 s are allowed.*"));
    EXPECT_THAT(refuse.text, HasSubstr(hours > 0 ? "ahead of" : "behind"));
  }
  TestNode node(TestNode::Config(server.address(), 0), TableOf(1, 1));
}

TEST(Trust, ACoordinatorsOwnCertificateIsLookedAtBeforeAnybodyElseSeesIt) {
  const auto now = std::chrono::system_clock::now();
  const auto at = [&](const std::string& folder, int days) -> std::string {
    try {
      return CheckDates(DatesOf(folder + "/coordinator.pem"), now + std::chrono::hours(24 * days));
    } catch (const std::invalid_argument& error) {
      return std::string("refused: ") + error.what();
    }
  };
  EXPECT_EQ(at(KeyRing::Folder(), 0), "");
  EXPECT_EQ(at(KeyRing::Folder(), 350), "");
  EXPECT_THAT(at(KeyRing::Folder(), 355), AllOf(HasSubstr("coordinator.pem: the certificate "
                                                          "\"spes-sim coordinator\" expires on 2"),
                                                Not(HasSubstr("refused"))));
  EXPECT_THAT(at(KeyRing::Folder(), 366), testing::MatchesRegex("refused: .* expired on 2.*"));
  EXPECT_THAT(at(KeyRing::Expired(), 0), HasSubstr("expired on 2000-12-31"));
  EXPECT_THAT(at(KeyRing::Future(), 0), HasSubstr("is not valid before 2098-12-31"));
  EXPECT_THAT(at("/nowhere", 0), HasSubstr("no certificate"));
}

TEST(Trust, FilesThatDoNotFitAreNamed) {
  const auto why = [](TcpSecurity security) -> std::string {
    auto serve = TestServer::Config(1);
    serve.security = std::move(security);
    ComputePool pool(1);
    MemoryRecorder recorder;
    try {
      ServeTcp(serve, TableOf(1, 1), pool, recorder);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  TcpSecurity security = KeyRing::Coordinator("t");
  security.certificate = "/nowhere.pem";
  EXPECT_THAT(why(security), AllOf(HasSubstr("/nowhere.pem"), HasSubstr("No such file")));
  security = KeyRing::Coordinator("t");
  security.key = KeyRing::Folder() + "/node-0-key.pem";
  EXPECT_THAT(why(security), HasSubstr("not the key of the certificate"));
  security.key = security.certificate;
  EXPECT_THAT(why(security), HasSubstr("no key in PEM form"));
  security = KeyRing::Coordinator("t");
  security.certificate = security.key;
  EXPECT_THAT(why(security), HasSubstr("no certificate in PEM form"));
  security = KeyRing::MutualCoordinator();
  security.authority = "";
  EXPECT_THAT(why(security), HasSubstr("TLS needs the file of the authority"));
}

TEST(Trust, SecretsThatCanBeGuessedOrReadAreNotUsed) {
  const std::string folder = testing::TempDir() + "spes-secrets";
  std::filesystem::create_directories(folder);
  const auto with_mode = [&](const std::string& name, const std::string& text, int mode) {
    const std::string path = folder + "/" + name;
    std::ofstream(path) << text;
    std::filesystem::permissions(path, static_cast<std::filesystem::perms>(mode));
    return path;
  };
  EXPECT_EQ(ReadToken(with_mode("good", "0123456789abcdef\n", 0600)), "0123456789abcdef");
  EXPECT_THROW(ReadToken(with_mode("short", "0123456789abcde\n", 0600)), std::invalid_argument);
  EXPECT_THROW(ReadToken(with_mode("open", "0123456789abcdef\n", 0640)), std::invalid_argument);
  EXPECT_NO_THROW(CheckPrivate(with_mode("key", "k", 0640)));
  for (const int mode : {0644, 0660, 0620, 0601}) {
    EXPECT_THROW(CheckPrivate(with_mode("key", "k", mode)), std::invalid_argument) << mode;
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace spes::trainer
