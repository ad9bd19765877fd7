#include "trainer/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/data/temporary_folder.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A token file in which every token is its own index, so that a batch tells where it came from.
std::string Counting(const TemporaryFolder& folder, const std::string& name, int n, int first = 0) {
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    ids[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(first + i);
  return folder.Write(name, {reinterpret_cast<const char*>(ids.data()), ids.size() * 4});
}

DomainConfig Tokens(const std::string& name, const std::string& file) {
  DomainConfig domain;
  domain.name = name;
  domain.tokens = {file};
  domain.token_type = TokenType::kUint32;
  return domain;
}

DomainConfig Text(const std::string& name, const std::string& file) {
  DomainConfig domain;
  domain.name = name;
  domain.files = {file};
  return domain;
}

DomainConfig Synthetic(const std::string& name, std::int64_t tokens) {
  DomainConfig domain;
  domain.name = name;
  domain.synthetic = true;
  domain.synthetic_tokens = tokens;
  return domain;
}

DataConfig With(std::vector<DomainConfig> domains) {
  DataConfig config;
  config.domains = std::move(domains);
  return config;
}

TEST(Dataset, HoldsOutTheEndOfEachDomain) {
  const TemporaryFolder folder;
  DataConfig config = With(
      {Tokens("a", Counting(folder, "a", 1000)), Tokens("b", Counting(folder, "b", 555, 2000))});
  config.held_out = 0.1;
  const auto data = OpenDataset(config, 5000, 10);
  ASSERT_EQ(data->domains(), 2);
  EXPECT_EQ(data->domain(1), "b");
  EXPECT_EQ(data->train_tokens(0), 900);
  EXPECT_EQ(data->held_out_tokens(0), 100);
  EXPECT_EQ(data->train_tokens(1), 500);
  EXPECT_EQ(data->held_out_tokens(1), 55);

  // Training: windows of 11 at stride 10, all of them, none into the held-out part.
  const auto source = data->Source(0, 1, 10, 1);
  Batch batch;
  source->Next(89 + 49, batch);
  EXPECT_EQ(batch.context, 10);
  std::set<int> starts;
  for (int s = 0; s < 89 + 49; ++s) {
    const std::int32_t* row = batch.tokens.data() + s * 11;
    for (int t = 0; t < 11; ++t) ASSERT_EQ(row[t], row[0] + t);
    EXPECT_TRUE(row[10] < 900 || (row[0] >= 2000 && row[10] < 2500));
    EXPECT_EQ(row[0] % 10, 0);
    starts.insert(row[0]);
  }
  EXPECT_EQ(starts.size(), 89u + 49u);
}

TEST(Dataset, HeldOutWindowsAreEvenlySpacedAndDoNotOverlap) {
  const TemporaryFolder folder;
  DataConfig config = With({Tokens("a", Counting(folder, "a", 10000))});
  config.held_out = 0.5;
  for (const int eval_tokens : {1, 10, 200, 4990, 4999, 1000000}) {
    config.eval_tokens = eval_tokens;
    const auto batches = OpenDataset(config, 10000, 10)->HeldOut(0, 7, 10);
    std::vector<int> starts;
    for (const Batch& batch : batches) {
      EXPECT_LE(batch.sequences, 7);
      ASSERT_EQ(batch.tokens.size(), static_cast<std::size_t>(batch.sequences * 11));
      for (int s = 0; s < batch.sequences; ++s) {
        const std::int32_t* row = batch.tokens.data() + s * 11;
        for (int t = 0; t < 11; ++t) ASSERT_EQ(row[t], row[0] + t);
        starts.push_back(row[0]);
      }
    }
    const int windows = std::min(std::max(1, eval_tokens / 10), 499);
    ASSERT_EQ(starts.size(), static_cast<std::size_t>(windows));
    EXPECT_EQ(starts.front(), 5000);
    if (windows == 1) continue;
    EXPECT_EQ(starts.back(), 10000 - 11);
    const int stride = (5000 - 11) / (windows - 1);
    for (std::size_t i = 1; i < starts.size(); ++i) {
      EXPECT_GE(starts[i] - starts[i - 1], std::max(10, stride));
      EXPECT_LE(starts[i] - starts[i - 1], stride + 1);
    }
  }
}

TEST(Dataset, PositionContinuesTheSameSamples) {
  const TemporaryFolder folder;
  DataConfig config = With(
      {Tokens("a", Counting(folder, "a", 500)), Tokens("b", Counting(folder, "b", 900, 1000))});
  config.held_out = 0.2;
  for (const Sharing sharing :
       {Sharing::kShuffled, Sharing::kDisjoint, Sharing::kByDomain, Sharing::kDirichlet}) {
    config.sharing = sharing;
    const auto data = OpenDataset(config, 5000, 10);
    const auto source = data->Source(1, 3, 10, 7);
    Batch batch, expected;
    source->Next(150, batch);
    const std::string position = source->Position();
    EXPECT_LT(position.size(), 100u);
    source->Next(150, expected);
    const auto other = data->Source(1, 3, 10, 7);
    other->Seek(position);
    EXPECT_EQ(other->Position(), position);
    other->Next(150, batch);
    EXPECT_EQ(batch.tokens, expected.tokens);

    for (const auto& wrong : {data->Source(2, 3, 10, 7), data->Source(1, 4, 10, 7),
                              data->Source(1, 3, 20, 7), data->Source(1, 3, 10, 8)}) {
      EXPECT_THROW(wrong->Seek(position), std::invalid_argument);
    }
    for (const std::string& text :
         {std::string(), position + " 1", position + " ", position + "x", position.substr(0, 16),
          position.substr(1), position.substr(0, 17) + "-1"}) {
      EXPECT_THROW(other->Seek(text), std::invalid_argument) << text;
    }
  }
}

// Sources share the dataset between threads.
TEST(Dataset, SourcesOfSeveralThreadsDoNotDisturbEachOther) {
  const auto data = OpenDataset(With({Synthetic("s", 100000)}), 256, 16);
  std::vector<Batch> alone(4), together(4);
  for (int n = 0; n < 4; ++n)
    data->Source(n, 4, 16, 1)->Next(500, alone[static_cast<std::size_t>(n)]);
  {
    std::vector<std::jthread> threads;
    for (int n = 0; n < 4; ++n) {
      threads.emplace_back(
          [&, n] { data->Source(n, 4, 16, 1)->Next(500, together[static_cast<std::size_t>(n)]); });
    }
  }
  for (std::size_t n = 0; n < 4; ++n) EXPECT_EQ(alone[n].tokens, together[n].tokens);
  EXPECT_NE(alone[0].tokens, alone[1].tokens);
}

TEST(Dataset, SyntheticDomainsReportTheirEntropyAndDifferByName) {
  DataConfig config = With({Synthetic("one", 400000), Synthetic("two", 400000)});
  const auto data = OpenDataset(config, 256, 64);
  const BaselineLoss one = data->Baseline(0, 64), two = data->Baseline(1, 64);
  for (const BaselineLoss& loss : {one, two}) {
    EXPECT_LT(loss.entropy, loss.bigram - 0.4);
    EXPECT_LT(loss.bigram, loss.unigram);
    EXPECT_LT(loss.unigram, std::log(32.) + 0.01);
  }
  EXPECT_NE(one.entropy, two.entropy);
  EXPECT_EQ(one.entropy, OpenDataset(config, 151665, 64)->Baseline(0, 64).entropy);
  // A small vocabulary limits the alphabet.
  const auto batches = OpenDataset(config, 5, 64)->HeldOut(0, 9, 64);
  for (const std::int32_t id : batches[0].tokens) ASSERT_LT(id, 5);
}

TEST(Dataset, LimitTakesTheStartOfTheTextBeforeTheSplit) {
  const TemporaryFolder folder;
  DataConfig config =
      With({Text("t", folder.Write("t", std::string(500, 'x') + std::string(500, 'y')))});
  config.held_out = 0.25;
  config.domains[0].limit_bytes = 600;
  const auto data = OpenDataset(config, 256, 9);
  EXPECT_EQ(data->train_tokens(0), 450);
  EXPECT_EQ(data->held_out_tokens(0), 150);
  EXPECT_EQ(data->HeldOut(0, 1, 9)[0].tokens[0], 'x');

  config = With({Tokens("c", Counting(folder, "c", 1000))});
  config.domains[0].limit_bytes = 2000;
  EXPECT_EQ(OpenDataset(config, 1000, 4)->train_tokens(0), 490);
}

TEST(Dataset, BadInputIsOneClearLine) {
  const TemporaryFolder folder;
  const std::string text = folder.Write("text", std::string(1000, 'x'));
  const auto expect = [](const DataConfig& config, std::int64_t vocabulary, std::int64_t context,
                         const std::string& a, const std::string& b) {
    EXPECT_THAT(MessageOf<std::invalid_argument>([&] { OpenDataset(config, vocabulary, context); }),
                AllOf(HasSubstr(a), HasSubstr(b)));
  };
  expect(With({}), 256, 8, "data.domains", "empty");
  expect(With({Text("t", folder.Path("none"))}), 256, 8,
         "domain 't': ", "none: cannot be read: No");
  expect(With({Text("t", folder.Write("e", ""))}), 256, 8, "domain 't'", "is empty");
  expect(With({Text("t", text)}), 255, 8, "256 tokens", "set model.vocabulary to 256");
  expect(With({Text("t", text)}), 256, 20, "20 of its 1000 tokens are held out, one sample is 21",
         "larger data.held_out");
  expect(With({Text("t", text), Text("t", text)}), 256, 8, "two domains are named 't'", "");
  expect(With({Text("", text)}), 256, 8, "has no name", "");
  expect(With({Tokens("c", Counting(folder, "c", 100))}), 50, 2, "domain 'c'",
         "beyond the model's");
  expect(With({Synthetic("s", 0)}), 256, 8, "domain 's'", "synthetic_tokens is 0");

  DataConfig config = With({Text("t", text)});
  config.held_out = 0.99;
  expect(config, 256, 10, "10 of its 1000 tokens are left for training", "smaller data.held_out");
  for (const double share : {0.0, 1.0, -0.1, std::nan("")}) {
    config.held_out = share;
    expect(config, 256, 8, "data.held_out", "between 0 and 1");
  }
  config = With({Text("t", text)});
  config.eval_tokens = 0;
  expect(config, 256, 8, "data.eval_tokens is 0", "");
  config = With({Text("t", text)});
  config.domains[0].limit_bytes = -1;
  expect(config, 256, 8, "limit_bytes is -1", "");
  config = With({Text("t", text)});
  config.domains[0].synthetic_tokens = 5;
  expect(config, 256, 8, "synthetic_tokens is set", "");
  config = With({Synthetic("s", 1000)});
  config.domains[0].limit_bytes = 5;
  expect(config, 256, 8, "limit_bytes has no meaning", "");
  config = With({Text("t", text)});
  config.domains[0].tokens = {text};
  expect(config, 256, 8, "has several of", "exactly one");
  config = With({DomainConfig{}});
  config.domains[0].name = "t";
  expect(config, 256, 8, "has none of corpus", "");
  config.domains[0].corpus = "gcide";
  expect(config, 256, 8, "corpus 'gcide' has no files", "");
  config = With({Tokens("c", Counting(folder, "c", 1000))});
  config.domains[0].limit_bytes = 1001;
  expect(config, 1000, 8, "limit_bytes is 1001", "multiple of the 4");
  config = With({Text("t", text)});
  config.tokenizer = TokenizerKind::kSentencePiece;
  config.tokenizer_model = folder.Path("absent.model");
  expect(config, 256, 8, "absent.model", "");
}

TEST(Dataset, AContextTooLongForTheOpenedDataIsSaid) {
  const auto data = OpenDataset(With({Synthetic("s", 1000)}), 256, 8);
  EXPECT_THAT(MessageOf<std::invalid_argument>([&] { data->Source(0, 1, 980, 1); }),
              HasSubstr("980 training tokens are less than one sample of 981"));
  EXPECT_THAT(MessageOf<std::invalid_argument>([&] { data->HeldOut(0, 1, 20); }),
              HasSubstr("20 held-out tokens are less than one sample of 21"));
}

// The bigram figures of the reference experiment, where the corpora are there (./dev setup).
TEST(Dataset, BigramOfTheCorporaIsAsInTheReference) {
  const char* const dependencies = std::getenv("SPES_DEPS");
  const char* const home = std::getenv("HOME");
  const std::string corpora =
      (dependencies ? dependencies : std::string(home ? home : "") + "/.cache/spes-sim") +
      "/corpora/";
  const std::string dictd = "/usr/share/dictd/", wordnet = "wordnet-base/usr/share/wordnet/data.";
  const struct {
    std::vector<std::string> files;
    double bigram;
  } corpus[] = {{{"dict-gcide" + dictd + "gcide.dict.dz"}, 2.445},
                {{"dict-foldoc" + dictd + "foldoc.dict.dz"}, 2.690},
                {{"dict-jargon" + dictd + "jargon.dict.dz"}, 2.653},
                {{wordnet + "adj", wordnet + "adv", wordnet + "noun", wordnet + "verb"}, 2.357}};
  int found = 0;
  for (const auto& [files, bigram] : corpus) {
    DomainConfig domain;
    domain.name = files[0];
    for (const std::string& file : files) domain.files.push_back(corpora + file);
    if (!std::filesystem::exists(domain.files[0])) continue;
    ++found;
    DataConfig config = With({domain});
    config.eval_tokens = 1 << 30;
    EXPECT_NEAR(OpenDataset(config, 256, 128)->Baseline(0, 128).bigram, bigram, 0.02) << files[0];
  }
  if (found == 0) GTEST_SKIP() << "no corpora in " << corpora;
}

}  // namespace
}  // namespace spes::trainer
