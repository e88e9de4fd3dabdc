// Training samples: windows of a tokenised text, a .bin of tokens, or synthetic tokens.
// Ownership: shares its read-only tokens between copies. Threads: batch() may run on many at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/data/data_source.h"
#include "core/data/text_windows.h"
#include "core/data/token_store.h"
#include "core/data/tokenizer.h"

namespace zl {

// Samples are drawn, not stored: sample r of optimizer step s is the window that Philox gives for
// (seed, s, r), uniform over the text with replacement. So the whole state of a source is its seed
// and the step, and a step sees the same samples for every split of its batch over ranks and
// micro-batches.
class TokenSource final : public DataSource {
 public:
  // A name that ends in .bin holds little-endian uint16 tokens: raw (nanoGPT) or behind a header of
  // 256 int32 (llm.c: magic 20240520, version 1, count), told apart by the magic number. It stays
  // in its file, whose pages processes share, and may not change while the source lives. Any other
  // file is text, tokenised in memory by `tokenizer`. `vocab` is the model's. Throws Error{invalid}
  // naming the file and the defect: missing, not a regular file, empty, odd byte count, header that
  // disagrees with the size, or a token id beyond `vocab` (with its position).
  static TokenSource open(const std::string& path, const Tokenizer& tokenizer, std::int64_t vocab,
                          std::uint64_t seed);

  // Endless independent uniform tokens in [0, vocab): nothing to learn, loss stays at ln(vocab).
  static TokenSource synthetic(std::int64_t vocab, std::uint64_t seed);

  // 0 for a synthetic source.
  std::int64_t tokens() const { return store_ == nullptr ? 0 : store_->count(); }

  // Of all tokens, wherever they lie: "4096 tokens, crc32c 01234567", or "synthetic".
  const std::string& fingerprint() const { return fingerprint_; }

  // Throws Error{invalid} unless one sample fits: sequence_length + 1 tokens.
  void require(std::int64_t sequence_length) const;

  // What judges a model on these tokens. Throws Error{invalid} where they have no end, or are fewer
  // than two.
  std::shared_ptr<const TextWindows> windows(const WindowPlan& plan) const;

  // Targets are the inputs shifted by one. Row i is sample request.first_sample() + i of the step.
  // Throws as require() does, and when the file has been cut short.
  Batch batch(const BatchRequest& request) const override;

 private:
  TokenSource(std::string name, std::int64_t vocab, std::uint64_t seed);
  void check();
  void read_sample(std::int64_t step, std::int64_t sample, std::int64_t sequence_length,
                   std::int32_t* inputs, std::int32_t* targets) const;

  std::string name_;
  std::int64_t vocab_;
  std::uint64_t seed_;
  std::shared_ptr<const TokenStore> store_;  // none: synthetic
  std::string fingerprint_ = "synthetic";
};

}  // namespace zl
