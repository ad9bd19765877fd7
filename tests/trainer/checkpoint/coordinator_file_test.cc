#include "trainer/checkpoint/coordinator_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/checkpoint/state_samples.h"
#include "tests/trainer/data/temporary_folder.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::int32_t kRound = 12;

class CoordinatorFileTest : public testing::TestWithParam<DType> {
 protected:
  CoordinatorState Sample() const { return SampleState(table_, kRound, 1); }
  CoordinatorState ReadBack(const CoordinatorState& state) const {
    WriteCoordinatorState(state, path_);
    return ReadCoordinatorState(path_, StateTable(GetParam()));
  }

  std::shared_ptr<const BlockTable> table_ = StateTable(GetParam());
  TemporaryFolder folder_;
  std::string path_ = folder_.Path("s");
};

INSTANTIATE_TEST_SUITE_P(, CoordinatorFileTest, testing::Values(DType::kFloat32, DType::kFloat64),
                         [](const auto& each) { return Name(each.param); });

TEST_P(CoordinatorFileTest, EveryBitComesBack) {
  const CoordinatorState state = Sample();
  const CoordinatorState read = ReadBack(state);
  EXPECT_EQ(Difference(state, read), "");
  for (BlockId id = 0; id < table_->size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    EXPECT_TRUE(HasZeroPadding((*table_)[id], GetParam(), *read.world.blocks[i].data));
    if (read.updater.velocity[i]) {
      EXPECT_TRUE(HasZeroPadding((*table_)[id], GetParam(), *read.updater.velocity[i]));
    }
  }
  // The same bytes each time.
  WriteCoordinatorState(read, folder_.Path("again"));
  EXPECT_EQ(folder_.Read("again"), folder_.Read("s"));
}

// What a state need not have, it need not have: absent stays absent, empty stays empty.
TEST_P(CoordinatorFileTest, OptionalPartsStayAsTheyWere) {
  CoordinatorState bare = Sample();
  bare.moments.clear();
  bare.updater = {};
  bare.nodes.clear();
  bare.load.clear();
  bare.delivered.clear();
  bare.norms.clear();
  bare.scenario_hash.clear();
  bare.allocation = {{}};
  EXPECT_EQ(Difference(bare, ReadBack(bare)), "");

  CoordinatorState nulls = Sample();
  for (auto& m : nulls.moments) m = nullptr;
  for (auto& v : nulls.updater.velocity) v = nullptr;
  for (auto& a : nulls.updater.adam) a = nullptr;
  nulls.allocation.clear();
  nulls.nodes.clear();
  EXPECT_EQ(Difference(nulls, ReadBack(nulls)), "");

  CoordinatorState first = Sample();
  first.round = 0;
  for (PublishedBlock& block : first.world.blocks) block.version = 0;
  for (Version& version : first.delivered) version = 0;
  first.now_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Difference(first, ReadBack(first)), "");
}

// A test of Difference, and that no field comes back by chance.
TEST_P(CoordinatorFileTest, EveryFieldIsItsOwn) {
  const CoordinatorState state = Sample();
  const std::vector<std::pair<std::string, std::function<void(CoordinatorState&)>>> changes = {
      {"scenario_hash", [](auto& s) { s.scenario_hash += "x"; }},
      {"run", [](auto& s) { ++s.run; }},
      {"round", [](auto& s) { ++s.round; }},
      {"step", [](auto& s) { ++s.step; }},
      {"now_s", [](auto& s) { s.now_s = std::nextafter(s.now_s, 9); }},
      {"up_bytes", [](auto& s) { ++s.up_bytes; }},
      {"down_bytes", [](auto& s) { ++s.down_bytes; }},
      {"initial_hash", [](auto& s) { s.initial_hash += "x"; }},
      {"version", [](auto& s) { ++s.world.blocks[1].version; }},
      {"world", [](auto& s) { s.world.blocks[3].data = s.updater.velocity[3]; }},
      {"moments", [](auto& s) { s.moments[0] = nullptr; }},
      {"adam", [](auto& s) { ++s.updater.adam[0]->updates; }},
      {"velocity", [](auto& s) { s.updater.velocity[3] = s.updater.residuals[3]; }},
      {"residuals", [](auto& s) { s.updater.residuals.erase(1); }},
      {"allocation",
       [](auto& s) {
         s.allocation[2] = {1, 2};
       }},
      {"nodes", [](auto& s) { s.nodes[2].quarantine = "x"; }},
      {"load", [](auto& s) { s.load[1] = 12; }},
      {"delivered", [](auto& s) { --s.delivered[0]; }},
      {"norms", [](auto& s) { s.norms.pop_back(); }}};
  for (const auto& [field, change] : changes) {
    CoordinatorState other = Sample();
    change(other);
    EXPECT_EQ(Difference(state, other), field);
    EXPECT_EQ(Difference(other, ReadBack(other)), "") << field;
    EXPECT_EQ(Difference(state, ReadBack(other)), field);
  }
}

TEST_P(CoordinatorFileTest, TensorsHaveNamesThatAPersonUnderstands) {
  WriteCoordinatorState(Sample(), path_);
  const SafetensorsFile file(path_);
  for (const char* name :
       {"world/layers.0.experts.1.w2", "moments/embed/first", "moments/embed/second",
        "velocity/embed", "adam/final_norm/first", "residual/final_norm"}) {
    const bool there = file.Find(name) != nullptr;
    EXPECT_EQ(there, std::string_view(name) != "adam/final_norm/first") << name;
  }
  EXPECT_EQ(file.metadata().at("round"), "12");
  EXPECT_EQ(file.metadata().at("allocation"), "[[0,1,3],[],[2]]");
}

TEST_P(CoordinatorFileTest, TextThatIsNotUtf8DoesNotKeepAStateFromBeingWritten) {
  CoordinatorState state = Sample();
  state.scenario_hash = "a\xff";
  state.nodes[0].quarantine = "b\xc3";
  const CoordinatorState read = ReadBack(state);
  EXPECT_EQ(read.scenario_hash, "a\uFFFD");
  EXPECT_EQ(read.nodes[0].quarantine, "b\uFFFD");
}

// One bit of each byte in turn, whatever it belongs to; then each length.
TEST_P(CoordinatorFileTest, NoByteChangesUnnoticed) {
  WriteCoordinatorState(Sample(), path_);
  const std::string whole = folder_.Read("s");
  const auto size = static_cast<std::streamoff>(whole.size());
  const auto refused = [&] {
    try {
      ReadCoordinatorState(path_, table_);
    } catch (const DamagedFile& e) {
      EXPECT_THAT(e.what(), StartsWith(path_ + ": "));
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      return true;
    }
    return false;
  };
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](std::streamoff at, char byte) { file.seekp(at).put(byte).flush(); };
  for (std::streamoff at = 0; at < size; ++at) {
    const char byte = whole[static_cast<std::size_t>(at)];
    put(at, static_cast<char>(byte ^ (1 << at % 8)));
    ASSERT_TRUE(refused()) << "byte " << at;
    put(at, byte);
  }
  EXPECT_FALSE(refused());
  put(size, '\0');
  EXPECT_TRUE(refused());
  for (std::streamoff left = size - 1; left >= 0; left -= 1 + left / 64) {
    std::filesystem::resize_file(path_, static_cast<std::uintmax_t>(left));
    ASSERT_TRUE(refused()) << left << " bytes";
  }
  std::filesystem::resize_file(path_, whole.size());  // with zeros
  EXPECT_TRUE(refused());
}

TEST_P(CoordinatorFileTest, AbsentIsNotDamaged) {
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { ReadCoordinatorState(path_, table_); }),
              AllOf(StartsWith(path_ + ": "), HasSubstr("No such file")));
}

// Whole files of something else: sealed, so that nothing but their content speaks against them.
class OtherContent : public CoordinatorFileTest {
 protected:
  // The message of the refusal of a sealed file with this change.
  template <class Change>
  std::string Message(Change change) {
    WriteCoordinatorState(Sample(), path_);
    const SealedFile file(path_);
    std::map<std::string, std::string> metadata = file.contents().metadata();
    metadata.erase("header_checksum");
    metadata.erase("tensor_checksums");
    std::vector<Buffer> values;
    std::vector<TensorView> views;
    for (const TensorInfo& tensor : file.contents().tensors()) {
      values.emplace_back(tensor.bytes);
      file.Read(tensor, values.back().data());
      views.push_back({tensor.name,
                       tensor.dtype == "F32" ? DType::kFloat32 : DType::kFloat64,
                       tensor.shape,
                       {values.back().data(), static_cast<std::size_t>(tensor.bytes)}});
    }
    change(metadata, views);
    WriteSealed(folder_.Path("o"), metadata, views);
    try {
      ReadCoordinatorState(folder_.Path("o"), table_);
    } catch (const DamagedFile& e) {
      ADD_FAILURE() << e.what();
    } catch (const std::invalid_argument& e) {
      EXPECT_THAT(e.what(), StartsWith(folder_.Path("o") + ": "));
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      return e.what();
    }
    return "read";
  }
  std::string WithText(const std::string& name, const std::string& text) {
    return Message([&](auto& metadata, auto&) { metadata[name] = text; });
  }
};

INSTANTIATE_TEST_SUITE_P(, OtherContent, testing::Values(DType::kFloat32, DType::kFloat64),
                         [](const auto& each) { return Name(each.param); });

TEST_P(OtherContent, IsRefusedByName) {
  EXPECT_EQ(Message([](auto&, auto&) {}), "read");
  EXPECT_THAT(WithText("format", "spes-coordinator-3"),
              HasSubstr("is a 'spes-coordinator-3', this program reads 'spes-coordinator-2'"));
  EXPECT_THAT(WithText("format", "a\nb"), HasSubstr("'a?b'"));
  const std::vector<std::pair<std::string, std::vector<std::string>>> wrong = {
      {"run", {"", "-1", "1.5", "18446744073709551616", " 1", "1 "}},
      {"round", {"-1", "2147483648", "twelve", "3"}},  // 3: lower than a block's version
      {"step", {"-1", "9223372036854775808"}},
      {"up_bytes", {"-1", "1e3"}},
      {"down_bytes", {"-1", "0x1"}},
      {"versions",
       {"[0,1,2]", "[0,1,2,3,4]", "[0,1,2,13]", "[0,1,2,-1]", "[0,1,2,1.0]", "[0,1,2,null]", "{}",
        "[0,1,2,\"3\"]", "[0,1,2,18446744073709551615]", "[0,1,2,4294967296]", "[0,1,2", "", "0"}},
      {"delivered", {"[0]", "[0,0,0,13]", "[0,0,0,-1]", "null"}},
      {"moments", {"[1]", "[1,null,1,-1]", "[1,null,1,true]", "7"}},
      {"velocity", {"[true]", "[1,1,0,1]", "[true,true,null,true]"}},
      {"adam", {"[1,2]", "[1,2,-3,null]", std::string(100000, '[')}},
      {"residuals", {"[1,4]", "[-1,3]", "[3,1]", "[1,1]", "[[1],[3]]"}},
      {"allocation",
       {"[[0],[4]]", "[[-1],[],[]]", "[[1,0],[],[]]", "[[0,0],[],[]]", "[0,1,2]", "[[0],[1]]",
        "[[[0]],[],[]]"}},
      {"nodes",
       {"[{}]", "[\"\",\"\",\"\"]", "[{\"quarantine\":1},{},{}]", "[{\"quarantine\":\"\"}]",
        R"([{"quarantine":"","reset":0,"lost":false,"steps_done":0}])",
        R"([{"quarantine":"","reset":false,"lost":false,"steps_done":-1}])",
        R"([{"quarantine":"","reset":false,"lost":false,"steps_done":0,"more":0}])"}}};
  for (const auto& [name, texts] : wrong) {
    for (const std::string& text : texts) {
      EXPECT_THAT(WithText(name, text), AllOf(testing::Ne("read"))) << name << " " << text;
    }
    EXPECT_THAT(Message([&](auto& metadata, auto&) { metadata.erase(name); }),
                HasSubstr("has no '" + name + "' in its metadata"));
  }
}

TEST_P(OtherContent, TensorsAreExactlyThoseOfTheState) {
  for (const char* gone : {"world/embed", "moments/embed/second", "velocity/embed",
                           "adam/embed/first", "residual/final_norm", "load", "norms", "now_s"}) {
    EXPECT_THAT(Message([&](auto&, auto& views) {
                  std::erase_if(views, [&](const TensorView& v) { return v.name == gone; });
                }),
                HasSubstr("has no tensor '" + std::string(gone) + "'"));
    EXPECT_THAT(Message([&](auto&, auto& views) {
                  for (TensorView& v : views) {
                    if (v.name == gone) v.shape.push_back(1);
                  }
                }),
                HasSubstr("tensor '" + std::string(gone) + "' is "));
  }
  EXPECT_THAT(Message([](auto&, auto& views) {
                views.push_back({"velocity/layers.0.experts.1.w1", DType::kFloat64, {0}, {}});
              }),
              HasSubstr("'velocity/layers.0.experts.1.w1', which the model has not"));
  EXPECT_THAT(Message([&](auto&, auto& views) {
                views.front().dtype =
                    GetParam() == DType::kFloat32 ? DType::kFloat64 : DType::kFloat32;
                views.front().shape = {0};
                views.front().data = {};
              }),
              HasSubstr("the model needs F"));
  EXPECT_THAT(Message([](auto&, auto& views) {
                for (TensorView& v : views) {
                  if (v.name == "load") v.shape = {1}, v.data = v.data.first(8);
                }
              }),
              HasSubstr("'load' has 1 entries, not 2"));
}

TEST_P(CoordinatorFileTest, AnotherModelsStateIsRefused) {
  WriteCoordinatorState(Sample(), path_);
  const auto message = [&](const std::shared_ptr<const BlockTable>& table) {
    return MessageOf<std::invalid_argument>([&] { ReadCoordinatorState(path_, table); });
  };
  const DType other = GetParam() == DType::kFloat32 ? DType::kFloat64 : DType::kFloat32;
  EXPECT_THAT(message(StateTable(GetParam(), 4)),
              AllOf(StartsWith(path_), HasSubstr("tensor 'world/embed' is "),
                    HasSubstr("[5, 3], the model needs "), HasSubstr("[5, 4]")));
  EXPECT_THAT(message(StateTable(other)), HasSubstr("tensor 'world/embed' is F"));
  const auto small = std::make_shared<const BlockTable>(
      GetParam(), std::vector{MakeBlock(GetParam(), BlockKind::kShared, -1, -1, {{"embed", {1}}})});
  EXPECT_THAT(message(small), HasSubstr("is of another model: 'versions' has 4 entries, not 1"));
}

// What could not be read back is not written.
TEST_P(CoordinatorFileTest, AStateThatDoesNotFitItsTableIsNotWritten) {
  const auto message = [&](const std::function<void(CoordinatorState&)>& change) {
    CoordinatorState state = Sample();
    change(state);
    return MessageOf<std::invalid_argument>([&] { WriteCoordinatorState(state, path_); });
  };
  EXPECT_THAT(message([](auto& s) { s.world.blocks.pop_back(); }),
              AllOf(StartsWith(path_ + ": cannot be written: the state "), HasSubstr("versions")));
  EXPECT_THAT(message([](auto& s) { s.world.blocks[1].data = nullptr; }),
              HasSubstr("has 0 bytes in world/layers.0.experts.0.w1"));
  EXPECT_THAT(message([](auto& s) { s.updater.velocity[0] = std::make_shared<Buffer>(8); }),
              HasSubstr("bytes in velocity/embed, the model needs"));
  EXPECT_THAT(message([](auto& s) { s.updater.residuals[9] = s.updater.residuals[1]; }),
              HasSubstr("residuals"));
  EXPECT_THAT(message([](auto& s) { s.round = -1; }), HasSubstr("round"));
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace spes::trainer
