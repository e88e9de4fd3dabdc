// Text to token ids and back: bytes, or GPT-2's byte-pair encoding.
// Ownership: a tokenizer owns its tables. Threads: immutable; share it freely.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zl {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::int64_t vocab() const = 0;  // ids are 0 .. vocab() - 1
  // Any bytes are accepted, valid UTF-8 or not: decode(encode(text)) == text.
  virtual std::vector<std::int32_t> encode(std::string_view text) const = 0;
  // Throws Error{invalid} naming position, id and vocabulary when an id is out of range.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
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

 private:
  struct Merge {
    std::int32_t rank;
    std::int32_t merged;
  };

  void read_vocab(const std::string& path);
  void read_merges(const std::string& path);
  std::vector<std::int32_t> encode_piece(std::string_view piece) const;

  std::vector<std::string> text_of_;                     // bytes of each token
  std::unordered_map<std::string, std::int32_t> id_of_;  // the inverse
  std::array<std::int32_t, 256> byte_id_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // by (left id << 32 | right id)
};

// The byte tokenizer for an empty folder name, else GPT-2's from that folder.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& folder);

}  // namespace zl
