#include "scenarios/run/label_scores.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <unordered_map>

namespace zl {
namespace {

bool is_word_character(unsigned char c) {
  return c >= 0x80 || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

template <class Word>
void for_words(std::string_view text, const Word& word) {
  std::string current;
  const auto finish = [&] {
    if (current.size() > 1) word(current);
    current.clear();
  };
  for (const char c : text) {
    if (!is_word_character(static_cast<unsigned char>(c))) {
      finish();
      continue;
    }
    const bool is_upper = c >= 'A' && c <= 'Z';
    current += is_upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  finish();
}

template <class Word>
void for_words(const TextLine& line, const Word& word) {
  for_words(line.text, word);
  if (line.pair) for_words(*line.pair, word);
}

class NaiveBayes {
 public:
  explicit NaiveBayes(const TextLines& train)
      : labels_(train.labels.size()), totals_(labels_), priors_(labels_) {
    const std::vector<std::int64_t> counts = train.counts();
    for (std::size_t label = 0; label < labels_; ++label) {
      priors_[label] =
          std::log(static_cast<double>(counts[label]) / static_cast<double>(train.lines.size()));
    }
    for (const TextLine& line : train.lines) {
      for_words(line, [&](const std::string& word) {
        auto& of_word = counts_.try_emplace(word, labels_, 0.0).first->second;
        of_word[static_cast<std::size_t>(line.label)] += 1;
        totals_[static_cast<std::size_t>(line.label)] += 1;
      });
    }
  }

  std::size_t tell(const TextLine& line) const {
    std::vector<double> scores = priors_;
    const auto words = static_cast<double>(counts_.size());
    for_words(line, [&](const std::string& word) {
      const auto found = counts_.find(word);
      if (found == counts_.end()) return;
      for (std::size_t label = 0; label < labels_; ++label) {
        scores[label] += std::log((found->second[label] + 1) / (totals_[label] + words));
      }
    });
    return static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) -
                                    scores.begin());
  }

 private:
  std::size_t labels_;
  std::unordered_map<std::string, std::vector<double>> counts_;
  std::vector<double> totals_, priors_;
};

}  // namespace

double ConfusionMatrix::rows() const {
  double sum = 0;
  for (const double count : counts_) sum += count;
  return sum;
}

double ConfusionMatrix::correct() const {
  double sum = 0;
  for (std::size_t label = 0; label < labels_; ++label) sum += counts_[label * labels_ + label];
  return sum;
}

double ConfusionMatrix::accuracy() const { return rows() > 0 ? correct() / rows() : 0; }

double ConfusionMatrix::macro_f1() const {
  double sum = 0;
  for (const LabelScores::Of& of : by_label(std::vector<std::string>(labels_))) sum += of.f1();
  return sum / static_cast<double>(labels_);
}

std::vector<LabelScores::Of> ConfusionMatrix::by_label(
    const std::vector<std::string>& names) const {
  std::vector<LabelScores::Of> all;
  for (std::size_t label = 0; label < labels_; ++label) {
    LabelScores::Of& of = all.emplace_back(LabelScores::Of{.name = names[label]});
    for (std::size_t other = 0; other < labels_; ++other) {
      of.texts += static_cast<std::int64_t>(counts_[label * labels_ + other]);
      of.told += static_cast<std::int64_t>(counts_[other * labels_ + label]);
    }
    of.correct = static_cast<std::int64_t>(counts_[label * labels_ + label]);
  }
  return all;
}

Interval wilson(double correct, double rows) {
  if (rows <= 0) return {};
  constexpr double kZ = 1.959963984540054;  // of a normal distribution, 95 %
  const double share = correct / rows, spread = kZ * kZ / rows;
  const double middle = share + spread / 2;
  const double half = kZ * std::sqrt(share * (1 - share) / rows + spread / (4 * rows));
  return {(middle - half) / (1 + spread), (middle + half) / (1 + spread)};
}

ConfusionMatrix naive_bayes(const TextLines& train, const TextLines& test) {
  const NaiveBayes learned(train);
  ConfusionMatrix matrix(train.labels.size());
  for (const TextLine& line : test.lines) {
    matrix.add(static_cast<std::size_t>(line.label), learned.tell(line));
  }
  return matrix;
}

ConfusionMatrix commonest(const TextLines& train, const TextLines& test) {
  const std::vector<std::int64_t> counts = train.counts();
  const auto most =
      static_cast<std::size_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
  ConfusionMatrix matrix(train.labels.size());
  for (const TextLine& line : test.lines) matrix.add(static_cast<std::size_t>(line.label), most);
  return matrix;
}

LabelScores label_scores(const ConfusionMatrix& model, double loss, const TextLines& train,
                         const TextLines& test) {
  const ConfusionMatrix words = naive_bayes(train, test), most = commonest(train, test);
  const Interval sure = wilson(model.correct(), model.rows());
  return {.data = test.name,
          .rows = static_cast<std::int64_t>(model.rows()),
          .loss = loss,
          .accuracy = model.accuracy(),
          .accuracy_low = sure.low,
          .accuracy_high = sure.high,
          .macro_f1 = model.macro_f1(),
          .majority_accuracy = most.accuracy(),
          .majority_macro_f1 = most.macro_f1(),
          .words_accuracy = words.accuracy(),
          .words_macro_f1 = words.macro_f1(),
          .by_label = model.by_label(train.labels)};
}

}  // namespace zl
