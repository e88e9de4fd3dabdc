// Text to token ids and back: bytes, GPT-2's byte-pair encoding, or what a tokenizer.json says.
// Ownership: a tokenizer owns its tables. Threads: immutable; share it freely.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/text/pair_merges.h"

namespace zl {

// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

// Which of the tokens that stand for a text of their own, such as <|im_start|> or [MASK], are found
// in a text: all, those that are not special, or none.
enum class AddedTokens : std::uint8_t { all, ordinary, none };

// What a model is given.
struct TextInput {
  std::string_view text;
  std::optional<std::string_view> pair = std::nullopt;  // a second text, as BERT takes
  bool special_tokens = true;  // those that the model wants around a text: [CLS], a beginning
  AddedTokens added = AddedTokens::all;
  // Parts of `text` that others wrote: no added token is found there, so nobody can write one.
  std::vector<TextRange> content = {};
};

struct TokenizedInput {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  // of each id: 0, or 1 for the second text
};

// Ids by role; nothing where the tokenizer has no such token.
struct SpecialIds {
  std::optional<std::int32_t> bos, eos, pad, unk, cls, sep, mask;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::int64_t vocab() const = 0;  // ids are 0 .. vocab() - 1; some may stand for nothing
  // Plain text: special tokens are neither put around it nor found in it. Any bytes are accepted,
  // valid UTF-8 or not. Where tokens are bytes, decode(encode(text)) == text; normalisation and
  // unknown tokens lose what they lose.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // Throws Error{invalid} naming position, id and vocabulary when an id is out of range.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;

  // With special tokens, as the input says.
  virtual TokenizedInput encode_input(const TextInput& input) const;
  // Whether people do not read the token: <|im_end|>, [SEP].
  virtual bool is_special(std::int32_t) const { return false; }
  // Of the token that is written so: "<|im_end|>", "[MASK]".
  virtual std::optional<std::int32_t> id_of(std::string_view) const { return std::nullopt; }
  virtual SpecialIds special_ids() const { return {}; }

  // decode() of the tokens that are not special.
  std::string decode_readable(std::span<const std::int32_t> tokens) const;
};

// One token per byte, vocabulary 256.
class ByteTokenizer final : public Tokenizer {
 public:
  std::int64_t vocab() const override { return 256; }
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
};

// Byte-level BPE as GPT-2 runs it (Radford et al. 2019, section 2.2; Sennrich et al. 2016).
// Letters, numbers and spaces of the pre-tokenisation are Unicode 14.0's, the whole range
// (unicode_class.h). Special tokens such as <|endoftext|> are decoded, but in encode() their text
// is ordinary text.
class Gpt2Tokenizer final : public Tokenizer {
 public:
  // Reads vocab.json and merges.txt from `folder`. Throws Error{invalid} naming the file and the
  // defect: missing, malformed, a byte without a token, ids with gaps, a merge of unknown tokens.
  explicit Gpt2Tokenizer(const std::string& folder);

  std::int64_t vocab() const override { return static_cast<std::int64_t>(text_of_.size()); }
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  std::optional<std::int32_t> id_of(std::string_view token) const override;
  SpecialIds special_ids() const override;  // <|endoftext|>, where the vocabulary has it

 private:
  void read_vocab(const std::string& path);
  void read_merges(const std::string& path);
  std::vector<std::int32_t> encode_piece(std::string_view piece) const;

  std::vector<std::string> text_of_;                     // bytes of each token
  std::unordered_map<std::string, std::int32_t> id_of_;  // the inverse
  std::array<std::int32_t, 256> byte_id_{};
  PairMerges merges_;
};

// Throws Error{invalid} naming position, id and vocabulary for the first id out of range.
void require_tokens(std::span<const std::int32_t> tokens, std::int64_t vocab);

// The byte tokenizer for an empty name. Else a tokenizer.json or vocab.txt (BERT's), or a folder
// with tokenizer.json, or vocab.json and merges.txt (GPT-2's), or vocab.txt: the first that is
// there. Names of special tokens come from tokenizer_config.json beside it, where there is one.
// Throws Error{invalid} naming the file and the path in it, and Error{unavailable} where this build
// lacks a library that the file needs.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

}  // namespace zl
