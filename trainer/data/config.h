// What the nodes train on and how they share it. Plain settings; docstrings are in
// scenarios/describe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spes::trainer {

enum class TokenType { kUint16, kUint32 };

// One domain of the data: exactly one of corpus, files, tokens, synthetic says where it comes from.
struct DomainConfig {
  std::string name;
  std::string corpus;               // an entry of the catalogue (scenarios/corpora.yaml)
  std::vector<std::string> files;   // plain text or gzip, told by content; concatenated
  std::vector<std::string> tokens;  // memmaps of token ids, raw little-endian, as OLMo writes them
  TokenType token_type = TokenType::kUint16;
  bool synthetic = false;             // the built-in language of known entropy
  std::int64_t synthetic_tokens = 0;  // its length
  std::int64_t limit_bytes = 0;  // of the text or token files only so much, from the start; 0: all
};

enum class Sharing {
  kShuffled,  // every node draws from the whole corpus in its own order
  kDisjoint,  // every node has its own part of every domain
  kByDomain,  // node n draws from domain n mod domains only; needs as many nodes as domains
  // Node n mixes domains by a draw from Dirichlet(α · the domains' shares of the training tokens):
  // smaller α, more unequal; large α, every node mixes in those shares.
  kDirichlet,
};

enum class TokenizerKind { kBytes, kSentencePiece };

struct DataConfig {
  std::vector<DomainConfig> domains;
  TokenizerKind tokenizer = TokenizerKind::kBytes;
  std::string tokenizer_model;  // path of a SentencePiece model
  double held_out = 0.02;       // share at the end of each domain, never trained on
  std::int64_t eval_tokens =
      65536;  // held-out tokens per domain that evaluations use, evenly spaced
  Sharing sharing = Sharing::kShuffled;
  double dirichlet_alpha = 0.5;
};

}  // namespace spes::trainer
