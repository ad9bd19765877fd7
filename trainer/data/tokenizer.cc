#include "trainer/data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace spes::trainer {
namespace {

constexpr std::size_t kPieceBytes = 65536;

class ByteTokenizer final : public Tokenizer {
 public:
  std::int64_t vocabulary() const override { return 256; }
  std::unique_ptr<TokenArray> Encode(std::string text) const override {
    return std::make_unique<MemoryTokens<std::string>>(std::move(text));
  }
};

// Cuts after the last line within kPieceBytes, else after the last space, else between characters.
std::vector<std::string_view> Cut(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t end = text.size();
    if (end > kPieceBytes) {
      const std::string_view head = text.substr(0, kPieceBytes);
      end = head.rfind('\n');
      if (end == head.npos) end = head.rfind(' ');
      if (end != head.npos) {
        ++end;
      } else {
        end = kPieceBytes;
        while (end > kPieceBytes - 4 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
          --end;
        }
      }
    }
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::string& path) : path_(path) {
    // Read here: the library writes to stderr what it cannot open.
    std::ifstream in(path, std::ios::binary);
    const std::string model{std::istreambuf_iterator<char>(in), {}};
    if (!in || model.empty()) {
      throw std::invalid_argument(path + ": the tokenizer model cannot be read or is empty");
    }
    const auto status = processor_.LoadFromSerializedProto(model);
    if (!status.ok()) {
      throw std::invalid_argument(path + ": is not a SentencePiece model");
    }
  }

  std::int64_t vocabulary() const override { return processor_.GetPieceSize(); }

  std::unique_ptr<TokenArray> Encode(std::string text) const override {
    const std::vector<std::string_view> pieces = Cut(text);
    std::vector<std::vector<int>> ids(pieces.size());
    std::atomic<std::size_t> next = 0;
    std::atomic<bool> failed = false;
    const auto work = [&] {
      for (std::size_t i; (i = next++) < pieces.size();) {
        if (!processor_.Encode({pieces[i].data(), pieces[i].size()}, &ids[i]).ok()) failed = true;
      }
    };
    std::vector<std::jthread> threads;
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    for (std::size_t t = 1; t < std::min(cores, pieces.size()); ++t) threads.emplace_back(work);
    work();
    threads.clear();
    if (failed) throw std::runtime_error(path_ + ": the tokenizer cannot encode the text");

    std::vector<std::int32_t> all;
    std::size_t total = 0;
    for (const auto& part : ids) total += part.size();
    all.reserve(total);
    for (const auto& part : ids) all.insert(all.end(), part.begin(), part.end());
    return std::make_unique<MemoryTokens<std::vector<std::int32_t>>>(std::move(all));
  }

 private:
  std::string path_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> MakeTokenizer(TokenizerKind kind, const std::string& model) {
  if (kind == TokenizerKind::kBytes) return std::make_unique<ByteTokenizer>();
  return std::make_unique<SentencePieceTokenizer>(model);
}

}  // namespace spes::trainer
