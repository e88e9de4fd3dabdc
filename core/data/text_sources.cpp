#include "core/data/text_sources.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"

namespace zl {

TextsInOrder::TextsInOrder(std::shared_ptr<const TextSource> texts) : texts_(std::move(texts)) {}

Batch TextsInOrder::batch(const BatchRequest& request) const {
  std::vector<std::int64_t> numbers;
  for (std::int64_t row = 0; row < request.micro_batch; ++row) {
    const std::int64_t sample = request.first_sample() + row;
    numbers.push_back(sample < texts_->size() ? sample : -1);
  }
  return texts_->of(numbers, request.sequence_length);
}

LabelSource::LabelSource(std::shared_ptr<const EncodedTexts> texts, std::int64_t labels,
                         std::uint64_t seed)
    : texts_(std::move(texts)), seed_(seed) {
  for (std::int64_t i = 0; i < texts_->size(); ++i) {
    const std::int32_t label = (*texts_)[i].label;
    if (label >= 0 && label < labels) continue;
    throw Error(ErrorCode::invalid, texts_->name() + ": text " + std::to_string(i + 1) +
                                        " has the label " + std::to_string(label) +
                                        ", not one of 0 to " + std::to_string(labels - 1) +
                                        "; give --labels as many as there are");
  }
}

Batch LabelSource::of(const std::vector<std::int64_t>& numbers, std::int64_t length) const {
  Batch batch = texts_->rows(numbers, length);
  for (const std::int64_t number : numbers) {
    batch.targets.push_back(number < 0 ? -1 : (*texts_)[number].label);
  }
  return batch;
}

Batch LabelSource::batch(const BatchRequest& request) const {
  return of(texts_of(*texts_, request, seed_), request.sequence_length);
}

Batch LabelSource::in_order(std::int64_t first, std::int64_t rows, std::int64_t length) const {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = first; i < first + rows; ++i) {
    numbers.push_back(i < texts_->size() ? i : -1);
  }
  return of(numbers, length);
}

MaskSource::MaskSource(std::shared_ptr<const EncodedTexts> texts, Tokens tokens, std::uint64_t seed)
    : texts_(std::move(texts)), tokens_(std::move(tokens)), seed_(seed) {
  constexpr double kShare = 0.15;
  for (std::int64_t i = 0; i < texts_->size(); ++i) {
    const auto there = static_cast<std::int64_t>(ordinary((*texts_)[i]).size());
    const auto share = static_cast<std::int64_t>(std::lround(kShare * static_cast<double>(there)));
    counts_.push_back(std::min(there, std::max<std::int64_t>(1, share)));
  }
}

std::vector<std::size_t> MaskSource::ordinary(const EncodedText& text) const {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < text.ids.size(); ++i) {
    if (std::find(tokens_.special.begin(), tokens_.special.end(), text.ids[i]) ==
        tokens_.special.end()) {
      places.push_back(i);
    }
  }
  return places;
}

// Each token draws a number: those with the smallest are told.
void MaskSource::hide(const EncodedText& text, std::int64_t count, std::int64_t step,
                      std::int64_t sample, std::int32_t* tokens, std::int32_t* targets) const {
  const std::uint64_t high = (std::uint64_t{kMaskStream} << 32) | static_cast<std::uint32_t>(step);
  struct Drawn {
    std::size_t place;
    Philox4 words;
  };
  std::vector<Drawn> drawn;
  for (const std::size_t place : ordinary(text)) {
    const auto low = (static_cast<std::uint64_t>(sample) << 32) | place;
    drawn.push_back({place, philox(seed_, low, high)});
  }
  std::sort(drawn.begin(), drawn.end(), [](const Drawn& a, const Drawn& b) {
    return std::pair(a.words.word[0], a.place) < std::pair(b.words.word[0], b.place);
  });
  drawn.resize(static_cast<std::size_t>(count));
  for (const auto& [place, words] : drawn) {
    targets[place] = tokens[place];
    const std::uint32_t tenth = words.word[1] % 10;
    if (tenth < 8) tokens[place] = tokens_.mask;
    if (tenth == 8) {
      tokens[place] = static_cast<std::int32_t>(
          std::uint64_t{words.word[2]} * static_cast<std::uint64_t>(tokens_.vocab) >> 32);
    }
  }
}

Batch MaskSource::batch(const BatchRequest& request) const {
  const std::int64_t length = request.sequence_length;
  const std::vector<std::int64_t> numbers = texts_of(*texts_, request, seed_);
  Batch batch = texts_->rows(numbers, length);
  batch.targets.assign(batch.tokens.size(), -1);
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    const auto first = static_cast<std::int64_t>(row) * length;
    hide((*texts_)[numbers[row]], count_of(numbers[row]), request.step,
         request.first_sample() + static_cast<std::int64_t>(row), batch.tokens.data() + first,
         batch.targets.data() + first);
  }
  BatchRequest step = request;
  step.micro = step.rank = 0;
  step.micro_batch = request.samples();
  step.micros = step.ranks = 1;
  for (const std::int64_t number : texts_of(*texts_, step, seed_)) {
    batch.step_rows += count_of(number);
  }
  return batch;
}

Batch MaskSource::of(const std::vector<std::int64_t>& numbers, std::int64_t length) const {
  Batch batch = texts_->rows(numbers, length);
  batch.targets.assign(batch.tokens.size(), -1);
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    const std::int64_t number = numbers[row];
    if (number < 0) continue;
    const auto first = static_cast<std::int64_t>(row) * length;
    hide((*texts_)[number], count_of(number), 0, number, batch.tokens.data() + first,
         batch.targets.data() + first);
  }
  return batch;
}

Batch SyntheticLabels::batch(const BatchRequest& request) const {
  Batch batch;
  const std::uint64_t high =
      (std::uint64_t{kSyntheticStream} << 32) | static_cast<std::uint32_t>(request.step);
  const auto below = [](std::uint32_t word, std::int64_t limit) {
    return static_cast<std::int32_t>(std::uint64_t{word} * static_cast<std::uint64_t>(limit) >> 32);
  };
  for (std::int64_t row = 0; row < request.micro_batch; ++row) {
    const auto sample = static_cast<std::uint64_t>(request.first_sample() + row);
    for (std::int64_t i = 0; i < request.sequence_length; ++i) {
      const Philox4 words = philox(seed_, (sample << 32) | static_cast<std::uint64_t>(i), high);
      if (i == 0) batch.targets.push_back(below(words.word[1], labels_));
      batch.tokens.push_back(below(words.word[0], vocab_));
    }
  }
  return batch;
}

}  // namespace zl
