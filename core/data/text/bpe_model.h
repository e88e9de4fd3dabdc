// Byte-pair encoding over characters (Sennrich et al. 2016), as tokenizer.json describes it: over
// GPT-2's spelling of bytes, or over text with bytes to fall back to (SentencePiece).
// Ownership: owns its tables. Threads: immutable; share it freely.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/data/text/pair_merges.h"
#include "core/data/text/token_model.h"

namespace zl {

class BpeModel final : public TokenModel {
 public:
  // Throws Error{invalid} naming the file and the path: a merge of unknown tokens, dropout.
  explicit BpeModel(const JsonView& spec);

  // Between two characters that no merge joins a long piece can be cut.
  std::size_t part_end(std::string_view piece, std::size_t begin) const override;
  void encode(std::string_view part, std::vector<std::int32_t>& ids) const override;

 private:
  void read_merges(const JsonView& merges);
  void read_bytes();
  bool falls_back(std::string_view symbol, std::vector<std::int32_t>& ids) const;
  std::vector<std::int32_t> symbols_of(std::string_view part) const;

  PairMerges merges_;
  std::unordered_set<std::uint64_t> joins_;   // (last character of a left side, first of its right)
  std::array<std::int32_t, 256> byte_ids_{};  // of <0x00> to <0xFF>; -1: no such token
  std::string prefix_, suffix_;               // of symbols that go on a word, and that end it
  std::int32_t unknown_id_ = -1;              // -1: what is unknown has no token
  bool fuses_unknown_, byte_fallback_, ignores_merges_;
};

}  // namespace zl
