// Texts as an encoder takes them, one a row: their tokens with the special ones around them, which
// of two texts each token belongs to, and a label.
// Ownership: owns its texts. Threads: immutable; share it freely.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/data/data_source.h"
#include "core/data/tokenizer.h"

namespace zl {

struct EncodedText {
  std::vector<std::int32_t> ids, types;
  std::int32_t label = -1;  // -1: it has none

  bool operator==(const EncodedText&) const = default;
};

// With special tokens around it, of at most `most` tokens: what is too long loses the last tokens
// of its longer part, not the special ones at its ends.
EncodedText encode_text(const Tokenizer& tokenizer, const TextInput& input, std::int64_t most);

class EncodedTexts {
 public:
  // name: of where they are from, for messages. pad: what fills a row behind its text. Throws
  // Error{invalid} naming it when there is no text, or a token beyond `vocab`.
  EncodedTexts(std::string name, std::vector<EncodedText> texts, std::int32_t pad,
               std::int64_t vocab);

  std::int64_t size() const { return static_cast<std::int64_t>(texts_.size()); }
  const std::string& name() const { return name_; }
  const EncodedText& operator[](std::int64_t i) const {
    return texts_[static_cast<std::size_t>(i)];
  }
  // "24952 texts, 856313 tokens, crc32c 01234567": of tokens, parts and labels.
  const std::string& fingerprint() const { return fingerprint_; }

  // A batch without targets, of rows filled up behind the texts with these numbers; -1: an empty
  // row. Throws Error{invalid} for a text longer than `length`.
  Batch rows(const std::vector<std::int64_t>& texts, std::int64_t length) const;

 private:
  std::string name_;
  std::vector<EncodedText> texts_;
  std::int32_t pad_;
  std::string fingerprint_;
};

// The numbers of the texts that a request's rows have: each epoch has every text once, in an order
// of its own for every seed, so that the whole state of a source is its seed and the step, and a
// step sees the same texts for every split of its batch over ranks and micro-batches.
std::vector<std::int64_t> texts_of(const EncodedTexts& texts, const BatchRequest& request,
                                   std::uint64_t seed);

}  // namespace zl
