// How well labels of texts are told: by a model, by always saying the commonest, and by counting
// words.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/train/run_result.h"
#include "scenarios/run/text_lines.h"

namespace zl {

// Rows: what texts are; columns: what they were told to be.
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::size_t labels) : labels_(labels), counts_(labels * labels) {}
  ConfusionMatrix(std::size_t labels, std::vector<double> counts)
      : labels_(labels), counts_(std::move(counts)) {}

  void add(std::size_t label, std::size_t told) { counts_[label * labels_ + told] += 1; }
  const std::vector<double>& counts() const { return counts_; }
  double rows() const;
  double correct() const;
  double accuracy() const;
  // The mean of the labels' F1; one that nobody told and no text is counts 0.
  double macro_f1() const;
  std::vector<LabelScores::Of> by_label(const std::vector<std::string>& names) const;

 private:
  std::size_t labels_;
  std::vector<double> counts_;
};

struct Interval {
  double low = 0, high = 1;
};
// Of a share, 95 % (Wilson 1927).
Interval wilson(double correct, double rows);

// Naive Bayes over the counts of words (McCallum & Nigam 1998), each counted once more than it is
// there: runs of two or more letters and digits, in lower case, as scikit-learn's CountVectorizer
// and MultinomialNB have it by default. Learns from `train`, is judged on `test`; text_pair counts
// as text.
ConfusionMatrix naive_bayes(const TextLines& train, const TextLines& test);

// The label that most of `train` has, told of every line of `test`.
ConfusionMatrix commonest(const TextLines& train, const TextLines& test);

// All of that beside a model's own; loss: its mean over the lines of `test`.
LabelScores label_scores(const ConfusionMatrix& model, double loss, const TextLines& train,
                         const TextLines& test);

}  // namespace zl
