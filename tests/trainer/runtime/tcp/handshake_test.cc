// Frames that connections are let in with and kept by.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/trainer/runtime/tcp/raw_socket.h"
#include "trainer/runtime/tcp/bytes.h"
#include "trainer/runtime/tcp/handshake.h"
#include "trainer/runtime/tcp/link.h"

namespace spes::trainer {
namespace {

Hello SomeHello() {
  Hello hello = GoodHello(3);
  hello.role = ConnectionRole::kBulk;
  hello.index = 5;
  FillRandom(hello.session);
  hello.or_any = true;
  return hello;
}

Welcome SomeWelcome() {
  Welcome welcome;
  FillRandom(welcome.session);
  welcome.node = 4;
  welcome.now_ns = 123;
  welcome.chunk_bytes = 4096;
  welcome.beat_ms = 2000;
  FillRandom(welcome.digest);
  return welcome;
}

// What encodes to `payload` decodes to `m`; a payload cut short or with more behind it does not.
template <class T, class F>
void ExpectExact(const T& m, F decode) {
  const std::string payload = Encode(m);
  EXPECT_EQ(decode(payload), m);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    EXPECT_THROW(decode(payload.substr(0, size)), WireError) << size;
  }
  EXPECT_THROW(decode(payload + '\0'), WireError);
}

TEST(Handshake, FramesAreReadAsTheyWereWrittenAndNothingElseIs) {
  ExpectExact(SomeHello(), DecodeHello);
  ExpectExact(Challenge{RandomNonce()}, DecodeChallenge);
  ExpectExact(Proof{RandomNonce()}, DecodeProof);
  ExpectExact(SomeWelcome(), DecodeWelcome);
  ExpectExact(Refuse{RefuseCode::kBanned, true, "because"}, DecodeRefuse);
  ExpectExact(Refuse{RefuseCode::kScenario, true, "two\nlines"}, DecodeRefuse);
  ExpectExact(Arrived{7, 3, false, {{0, 2}, {4, 5}}}, DecodeArrived);
  ExpectExact(Arrived{7, 7, true, {}}, DecodeArrived);
  ExpectExact(Beat{1, 2, 3}, DecodeBeat);
  ExpectExact(Bye{true, "done"}, DecodeBye);
  EXPECT_LE(Encode(SomeHello()).size(), kMaxHandshakeBytes);
  EXPECT_EQ(Encode(Beat{}).size(), kBeatBytes);
}

TEST(Handshake, ValuesThatMeanNothingAreRefused) {
  const auto refused = [](auto change) {
    Hello hello = SomeHello();
    change(hello);
    EXPECT_THROW(DecodeHello(Encode(hello)), WireError);
  };
  refused([](Hello& h) { h.role = static_cast<ConnectionRole>(0); });
  refused([](Hello& h) { h.role = static_cast<ConnectionRole>(4); });
  refused([](Hello& h) { h.index = kMaxStreams; });
  refused([](Hello& h) { h.role = ConnectionRole::kControl; });  // has no index
  refused([](Hello& h) { h.session = kNoSession; });             // which has no parameters yet
  refused([](Hello& h) { h.chunk_bytes = 0; });
  refused([](Hello& h) { h.chunk_bytes = 0xffffffff; });
  refused([](Hello& h) { h.beat_ms = 0; });
  refused([](Hello& h) { h.beat_ms = 3'600'001; });  // nobody would be found dead
  refused([](Hello& h) { h.scenario_hash = std::string(300, 'x'); });
  EXPECT_THROW(DecodeArrived(Encode(Arrived{7, 3, false, {{2, 2}}})), WireError);
  EXPECT_THROW(DecodeArrived(Encode(Arrived{7, 3, false, {{2, 4}, {3, 5}}})), WireError);
  EXPECT_THROW(DecodeArrived(Encode(Arrived{7, 3, true, {{2, 4}}})), WireError);
  Welcome welcome = SomeWelcome();
  welcome.beat_ms = 3'600'001;
  EXPECT_THROW(DecodeWelcome(Encode(welcome)), WireError);
  Refuse refuse{RefuseCode::kTooMany, false, ""};
  refuse.code = static_cast<RefuseCode>(9);
  EXPECT_THROW(DecodeRefuse(Encode(refuse)), WireError);
}

TEST(Handshake, FiguresThatCannotBeAreRefused) {
  EXPECT_EQ(DecodeFigures(Encode(TransferFigures{1, 2, 3, 4, 0, 86400})).drops, 4);
  EXPECT_NO_THROW(DecodeFigures(Encode(TransferFigures{})));
  const auto refused = [](auto change) {
    TransferFigures figures;
    change(figures);
    EXPECT_THROW(DecodeFigures(Encode(figures)), WireError);
  };
  refused([](TransferFigures& f) { f.wire_bytes = -1; });
  refused([](TransferFigures& f) { f.retransmitted_bytes = -1; });
  refused([](TransferFigures& f) { f.retransmissions = -1; });
  refused([](TransferFigures& f) { f.drops = -1; });
  refused([](TransferFigures& f) { f.rtt_min_s = -1; });
  refused([](TransferFigures& f) { f.rtt_mean_s = 1e300; });
  refused([](TransferFigures& f) { f.rtt_mean_s = std::numeric_limits<double>::infinity(); });
}

TEST(Handshake, TextsOfOthersAreOnePrintableLine) {
  EXPECT_EQ(DecodeBye(Encode(Bye{true, "a\nb\x1b[31m"})).reason, "a?b?[31m");
  EXPECT_EQ(DecodeRefuse(Encode(Refuse{RefuseCode::kBanned, true, "a\nb"})).text, "a?b");
  EXPECT_EQ(DecodeBye(Encode(Bye{true, std::string(5000, 'x')})).reason.size(), 512u);
}

TEST(Handshake, AProofIsOfTheTokenTheDirectionAndAllThatWasSaid) {
  const Transcript said{"hello", "challenge", "channel"};
  const Digest proof = NodeProof("token", said);
  EXPECT_TRUE(SameDigest(proof, NodeProof("token", said)));
  EXPECT_FALSE(SameDigest(proof, NodeProof("tokeN", said)));
  EXPECT_FALSE(SameDigest(proof, CoordinatorProof("token", said)));
  EXPECT_FALSE(SameDigest(proof, NodeProof("token", {"hellO", "challenge", "channel"})));
  EXPECT_FALSE(SameDigest(proof, NodeProof("token", {"hello", "challengE", "channel"})));
  EXPECT_FALSE(SameDigest(proof, NodeProof("token", {"hello", "challenge", ""})));
  // What one says is not what the other says.
  EXPECT_FALSE(SameDigest(proof, NodeProof("token", {"hell", "ochallenge", "channel"})));
}

// RFC 4231, case 2.
TEST(Handshake, HmacIsSha256s) {
  EXPECT_EQ(Hexadecimal(Hmac("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace spes::trainer
