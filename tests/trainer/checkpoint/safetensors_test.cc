#include "trainer/checkpoint/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/data/temporary_folder.h"

namespace spes::trainer {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// A file with this header, whatever it says, and so many bytes of values.
std::string Raw(const std::string& header, std::size_t data_bytes) {
  std::string file(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(file.data(), &length, 8);
  return file + header + std::string(data_bytes, '\x01');
}

TEST(Safetensors, WritesTheFormatToTheByte) {
  const TemporaryFolder folder;
  const std::vector<float> a = {1, 2};
  const std::vector<double> b = {3};
  const std::vector<TensorView> tensors = {{"a", DType::kFloat32, {2, 1}, Bytes(a)},
                                           {"b", DType::kFloat64, {}, Bytes(b)}};
  WriteSafetensors(folder.Path("f"), {{"k", "v"}}, tensors);
  std::string header =
      R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"F64","shape":[],"data_offsets":[8,16]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string expected = Raw(header, 16);
  std::memcpy(expected.data() + expected.size() - 16, a.data(), 8);
  std::memcpy(expected.data() + expected.size() - 8, b.data(), 8);
  EXPECT_EQ(folder.Read("f"), expected);
  EXPECT_FALSE(std::filesystem::exists(folder.Path("f.tmp")));
}

TEST(Safetensors, ReadsInEitherPrecision) {
  const TemporaryFolder folder;
  std::vector<float> a(100000);
  std::vector<double> b(100000);  // more than one piece of the conversion
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = 1.0f / static_cast<float>(i + 1);
    b[i] = 1.0 / static_cast<double>(i + 3);
  }
  const std::vector<TensorView> tensors = {{"a", DType::kFloat32, {100000}, Bytes(a)},
                                           {"b", DType::kFloat64, {100, 1000}, Bytes(b)}};
  WriteSafetensors(folder.Path("f"), {}, tensors);
  const SafetensorsFile file(folder.Path("f"));
  std::vector<float> f(a.size());
  std::vector<double> d(a.size());
  file.Read(*file.Find("a"), DType::kFloat32, std::as_writable_bytes(std::span(f)).data());
  EXPECT_EQ(f, a);
  file.Read(*file.Find("b"), DType::kFloat64, std::as_writable_bytes(std::span(d)).data());
  EXPECT_EQ(d, b);
  file.Read(*file.Find("a"), DType::kFloat64, std::as_writable_bytes(std::span(d)).data());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(d[i], static_cast<double>(a[i]));
  file.Read(*file.Find("b"), DType::kFloat32, std::as_writable_bytes(std::span(f)).data());
  for (std::size_t i = 0; i < b.size(); ++i) ASSERT_EQ(f[i], static_cast<float>(b[i]));
}

TEST(Safetensors, ReadsFilesOfOtherPrograms) {
  for (const char* name : {"hf_olmoe_tiny", "hf_qwen3_dense_tiny", "hf_qwen3_moe_tiny"}) {
    const SafetensorsFile file(SPES_SOURCE_DIR "/tests/golden/" + std::string(name) +
                               "/model.safetensors");
    EXPECT_EQ(file.metadata().at("format"), "pt");
    const TensorInfo* embed = file.Find("model.embed_tokens.weight");
    ASSERT_NE(embed, nullptr);
    EXPECT_EQ(embed->dtype, "F32");
    EXPECT_EQ(embed->shape.size(), 2u);
    std::vector<float> values(static_cast<std::size_t>(embed->elements));
    file.Read(*embed, DType::kFloat32, std::as_writable_bytes(std::span(values)).data());
    double sum = 0;
    for (const float v : values) sum += std::abs(v);
    EXPECT_GT(sum, 0);
    EXPECT_LT(sum / static_cast<double>(values.size()), 10);
  }
}

TEST(Safetensors, RefusesDamagedFiles) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& content) {
    const std::string path = folder.Write("f", content);
    const std::string text =
        MessageOf<std::invalid_argument>([&] { const SafetensorsFile file(path); });
    EXPECT_THAT(text, testing::StartsWith(path + ": "));
    EXPECT_LT(text.size(), 300u);
    return text;
  };
  const auto tensor = [](const std::string& name, const std::string& dtype,
                         const std::string& shape, const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape +
           R"(,"data_offsets":)" + offsets + "}";
  };
  const std::string a = tensor("a", "F32", "[2]", "[0,8]"), b = tensor("b", "F32", "[1]", "[8,12]");

  EXPECT_THAT(message("short"), HasSubstr("5 bytes only"));
  EXPECT_THAT(message(std::string(8, '\xff') + "{}"), HasSubstr("header would be 184467440737"));
  EXPECT_THAT(message(Raw("{}", 0).substr(0, 9)), HasSubstr("header would be 2 bytes"));
  EXPECT_THAT(message(Raw("{\"a\":", 8)), HasSubstr("not JSON"));
  EXPECT_THAT(message(Raw("[1]", 0)), HasSubstr("not an object"));
  EXPECT_THAT(message(Raw(std::string(200000, '['), 0)), HasSubstr("nested too deep"));
  EXPECT_THAT(message(Raw(R"({"a\n)" + std::string(1000, 'b') + R"(":3})", 8)),
              HasSubstr("tensor 'a?bbb"));
  EXPECT_THAT(message(Raw("{" + a + "," + a + "}", 8)), HasSubstr("'a' stands twice"));
  EXPECT_THAT(message(Raw(R"({"__metadata__":{"k":1},)" + a + "}", 8)), HasSubstr("metadata 'k'"));
  EXPECT_THAT(message(Raw(R"({"__metadata__":[],)" + a + "}", 8)), HasSubstr("__metadata__"));
  EXPECT_THAT(message(Raw("{" + a + "," + b + "}", 11)), HasSubstr("cut short"));
  EXPECT_THAT(message(Raw("{" + a + "," + b + "}", 13)), HasSubstr("13 bytes of values"));
  EXPECT_THAT(message(Raw("{" + tensor("a", "F32", "[3]", "[0,8]") + "}", 8)),
              HasSubstr("'a' has 8 bytes, which is not its shape [3] in F32"));
  EXPECT_THAT(message(Raw("{" + tensor("a", "F23", "[2]", "[0,8]") + "}", 8)), HasSubstr("F23"));
  EXPECT_THAT(message(Raw("{" + tensor("a", "F32", "[-2]", "[0,8]") + "}", 8)),
              HasSubstr("-2 is not a size"));
  EXPECT_THAT(message(Raw("{" + tensor("a", "F32", "[2]", "[8,0]") + "}", 8)), HasSubstr("'a'"));
  EXPECT_THAT(message(Raw("{" + tensor("a", "F32", "[2]", "[0.0,8]") + "}", 8)),
              HasSubstr("not a size"));
  EXPECT_THAT(message(Raw("{" + tensor("a", "F32", "[18446744073709551615]", "[0,8]") + "}", 8)),
              HasSubstr("not a size"));
  // 2³² · 2³² elements would be 0 in 64 bits.
  EXPECT_THAT(message(Raw("{" + tensor("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}", 0)),
              HasSubstr("not its shape"));
  EXPECT_THAT(message(Raw("{" + a + "," + tensor("b", "F32", "[1]", "[4,8]") + "}", 8)),
              HasSubstr("overlaps"));
  EXPECT_THAT(message(Raw("{" + a + "," + tensor("b", "F32", "[1]", "[12,16]") + "}", 16)),
              HasSubstr("gap"));
  EXPECT_THAT(message(Raw(R"({"a":{"dtype":"F32","shape":[2]}})", 8)), HasSubstr("data_offsets"));
  EXPECT_THAT(message(Raw(R"({"a":3})", 8)), HasSubstr("'a' needs dtype"));

  const std::string absent = folder.Path("absent");
  EXPECT_THAT(MessageOf<std::invalid_argument>([&] { const SafetensorsFile file(absent); }),
              AllOf(HasSubstr(absent), HasSubstr("No such file")));
}

// A flipped bit in any byte of the header either is refused or leaves a consistent file.
TEST(Safetensors, SurvivesAnyFlippedHeaderByte) {
  const TemporaryFolder folder;
  const std::vector<float> a = {1, 2};
  const std::vector<TensorView> tensors = {{"a", DType::kFloat32, {2}, Bytes(a)},
                                           {"b", DType::kFloat32, {1, 2}, Bytes(a)}};
  WriteSafetensors(folder.Path("f"), {{"k", "v"}}, tensors);
  const std::string whole = folder.Read("f");
  for (std::size_t at = 0; at < whole.size() - 16; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    folder.Write("g", damaged);
    try {
      const SafetensorsFile file(folder.Path("g"));
      for (const TensorInfo& tensor : file.tensors()) {
        EXPECT_LE(tensor.offset + tensor.bytes, static_cast<std::int64_t>(whole.size()));
      }
    } catch (const std::invalid_argument& e) {
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(Safetensors, OtherTypesAreListedButNotRead) {
  const TemporaryFolder folder;
  const std::string path =
      folder.Write("f", Raw(R"({"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]}})", 6));
  const SafetensorsFile file(path);
  ASSERT_EQ(file.tensors().size(), 1u);
  EXPECT_EQ(file.tensors()[0].dtype, "BF16");
  std::byte out[12];
  EXPECT_THAT(
      MessageOf<std::invalid_argument>([&] { file.Read(file.tensors()[0], DType::kFloat32, out); }),
      HasSubstr("'a' is BF16"));
}

TEST(Safetensors, AFailedWriteLeavesTheOldFile) {
  const TemporaryFolder folder;
  folder.Write("f", "old");
  std::filesystem::create_directory(folder.Path("f.tmp"));  // in the way
  EXPECT_THAT(MessageOf<std::runtime_error>([&] { WriteSafetensors(folder.Path("f"), {}, {}); }),
              AllOf(HasSubstr(folder.Path("f")), HasSubstr("cannot be written")));
  EXPECT_EQ(folder.Read("f"), "old");
  EXPECT_THAT(
      MessageOf<std::runtime_error>([&] { WriteSafetensors(folder.Path("absent/f"), {}, {}); }),
      HasSubstr("No such file"));
  // A full disk.
  const std::vector<float> a = {1};
  const std::vector<TensorView> tensors = {{"a", DType::kFloat32, {1}, Bytes(a)}};
  std::filesystem::create_symlink("/dev/full", folder.Path("g.tmp"));
  EXPECT_THAT(
      MessageOf<std::runtime_error>([&] { WriteSafetensors(folder.Path("g"), {}, tensors); }),
      HasSubstr("No space left"));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("g")));
  EXPECT_FALSE(std::filesystem::is_symlink(folder.Path("g.tmp")));
}

}  // namespace
}  // namespace spes::trainer
