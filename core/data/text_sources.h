// What encoders are trained on: labels of texts, or tokens that were hidden in them.
// Ownership: share their read-only texts. Threads: batch() may run on many at once.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/encoded_texts.h"

namespace zl {

// Texts, which have an order of their own, too.
class TextSource : public DataSource {
 public:
  virtual std::int64_t size() const = 0;
  // These texts, a row each; -1: a row that does not count.
  virtual Batch of(const std::vector<std::int64_t>& numbers, std::int64_t length) const = 0;
};

// The texts of a source in their own order, each once, to judge a model by.
class TextsInOrder final : public EvaluationSource {
 public:
  explicit TextsInOrder(std::shared_ptr<const TextSource> texts);

  std::int64_t samples() const override { return texts_->size(); }
  Batch batch(const BatchRequest& request) const override;

 private:
  std::shared_ptr<const TextSource> texts_;
};

// One label a text.
class LabelSource final : public TextSource {
 public:
  // Throws Error{invalid} naming the text whose label is not in [0, labels).
  LabelSource(std::shared_ptr<const EncodedTexts> texts, std::int64_t labels, std::uint64_t seed);

  Batch batch(const BatchRequest& request) const override;
  std::int64_t size() const override { return texts_->size(); }
  Batch of(const std::vector<std::int64_t>& numbers, std::int64_t length) const override;
  // The texts from `first` on in their own order, of which those beyond the last have no label.
  Batch in_order(std::int64_t first, std::int64_t rows, std::int64_t length) const;

 private:
  std::shared_ptr<const EncodedTexts> texts_;
  std::uint64_t seed_;
};

// Masked-language modelling (Devlin et al. 2019, section 3.1): of the tokens of a text that are not
// special, 15 %, rounded, at least one, are to be told; of them 80 % are hidden by [MASK], 10 % by
// a token drawn from the vocabulary, the rest stay. Which ones: by Philox of (seed, step, sample).
// How many there are of a step is known from its texts' lengths, and told in Batch::step_rows.
class MaskSource final : public TextSource {
 public:
  struct Tokens {
    std::int32_t mask = 0;
    std::vector<std::int32_t> special = {};  // never told
    std::int64_t vocab = 0;
  };
  MaskSource(std::shared_ptr<const EncodedTexts> texts, Tokens tokens, std::uint64_t seed);

  Batch batch(const BatchRequest& request) const override;
  std::int64_t size() const override { return texts_->size(); }
  // With the masks that their numbers give them.
  Batch of(const std::vector<std::int64_t>& numbers, std::int64_t length) const override;

 private:
  std::int64_t count_of(std::int64_t text) const { return counts_[static_cast<std::size_t>(text)]; }
  std::vector<std::size_t> ordinary(const EncodedText& text) const;
  void hide(const EncodedText& text, std::int64_t count, std::int64_t step, std::int64_t sample,
            std::int32_t* tokens, std::int32_t* targets) const;

  std::shared_ptr<const EncodedTexts> texts_;
  Tokens tokens_;
  std::uint64_t seed_;
  std::vector<std::int64_t> counts_;  // tokens to be told, by text
};

// Endless texts of uniform tokens with uniform labels: nothing to learn.
class SyntheticLabels final : public DataSource {
 public:
  SyntheticLabels(std::int64_t vocab, std::int64_t labels, std::uint64_t seed)
      : vocab_(vocab), labels_(labels), seed_(seed) {}
  Batch batch(const BatchRequest& request) const override;

 private:
  std::int64_t vocab_, labels_;
  std::uint64_t seed_;
};

}  // namespace zl
