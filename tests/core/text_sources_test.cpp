// Labels and masked tokens of texts: the same for every split of a step, each text once an epoch.
#include "core/data/text_sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/data/epoch_order.h"

namespace zl {
namespace {

// [1 t t t ... 2], of different lengths.
std::shared_ptr<const EncodedTexts> some_texts(int count) {
  std::vector<EncodedText> texts;
  for (int i = 0; i < count; ++i) {
    EncodedText text;
    text.ids.push_back(1);
    for (int t = 0; t < 1 + i % 13; ++t) text.ids.push_back(5 + (i * 7 + t) % 40);
    text.ids.push_back(2);
    text.types.assign(text.ids.size(), 0);
    text.label = i % 3;
    texts.push_back(text);
  }
  return std::make_shared<const EncodedTexts>("texts", std::move(texts), 0, 50);
}

const MaskSource::Tokens kTokens{.mask = 3, .special = {0, 1, 2, 3}, .vocab = 50};

TEST(EpochOrder, IsAPermutationOfItsOwnForEverySeedAndEpoch) {
  for (const std::int64_t count : {1, 2, 3, 7, 64, 65, 1000}) {
    std::set<std::vector<std::int64_t>> orders;
    for (const std::uint64_t seed : {1u, 2u}) {
      for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
        std::vector<std::int64_t> order;
        for (std::int64_t i = 0; i < count; ++i) order.push_back(shuffled(count, seed, epoch, i));
        orders.insert(order);
        std::sort(order.begin(), order.end());
        for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
      }
    }
    if (count >= 64) {
      EXPECT_EQ(orders.size(), 4u);
    }
  }
}

// Neighbours do not stay neighbours: the mean distance of random places is a third of the count.
TEST(EpochOrder, IsMixed) {
  double distance = 0;
  for (std::int64_t i = 0; i + 1 < 3000; ++i) {
    const std::int64_t moved = shuffled(3000, 4, 0, i + 1) - shuffled(3000, 4, 0, i);
    distance += static_cast<double>(std::abs(moved)) / 3000;
  }
  EXPECT_NEAR(distance / 2999, 1.0 / 3, 0.02);
}

TEST(LabelSource, AStepHasTheSameTextsForEverySplit) {
  const LabelSource source(some_texts(50), 3, 9);
  const BatchRequest whole{.step = 4, .micro_batch = 12, .sequence_length = 16};
  const Batch expected = source.batch(whole);
  Batch parts;
  for (int micro = 0; micro < 2; ++micro) {
    for (int rank = 0; rank < 3; ++rank) {
      const Batch part = source.batch({.step = 4,
                                       .micro = micro,
                                       .rank = rank,
                                       .ranks = 3,
                                       .micro_batch = 2,
                                       .sequence_length = 16,
                                       .micros = 2});
      parts.tokens.insert(parts.tokens.end(), part.tokens.begin(), part.tokens.end());
      parts.targets.insert(parts.targets.end(), part.targets.begin(), part.targets.end());
      parts.lengths.insert(parts.lengths.end(), part.lengths.begin(), part.lengths.end());
      parts.segments.insert(parts.segments.end(), part.segments.begin(), part.segments.end());
    }
  }
  EXPECT_EQ(parts, expected);
}

TEST(LabelSource, AnEpochHasEveryTextOnce) {
  const auto texts = some_texts(50);
  const LabelSource source(texts, 3, 9);
  std::map<std::vector<std::int32_t>, int> seen, all;
  for (std::int64_t i = 0; i < 50; ++i) ++all[(*texts)[i].ids];
  for (std::int64_t step = 0; step < 10; ++step) {
    const Batch batch = source.batch({.step = step, .micro_batch = 5, .sequence_length = 16});
    for (std::size_t row = 0; row < 5; ++row) {
      const auto begin = batch.tokens.begin() + static_cast<std::ptrdiff_t>(16 * row);
      ++seen[{begin, begin + batch.lengths[row]}];
    }
  }
  EXPECT_EQ(seen, all);
}

TEST(LabelSource, InOrderEndsWithEmptyRows) {
  const LabelSource source(some_texts(5), 3, 9);
  const Batch batch = source.in_order(4, 2, 16);
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{1, -1}));
  EXPECT_EQ(batch.lengths[1], 0);
}

TEST(LabelSource, RefusesWhatItCannotTake) {
  EXPECT_THROW(LabelSource(some_texts(5), 2, 9), Error);
  EXPECT_THROW(LabelSource(some_texts(14), 3, 9).batch({.micro_batch = 14, .sequence_length = 8}),
               Error);
  EXPECT_THROW(EncodedTexts("none", {}, 0, 50), Error);
  EXPECT_THROW(EncodedTexts("high", {EncodedText{{50}, {0}, 0}}, 0, 50), Error);
}

// 15 % of the ordinary tokens of every text, at least one; 80 % of them hidden, 10 % another token.
TEST(MaskSource, HidesWhatBertHides) {
  const auto texts = some_texts(400);
  const MaskSource source(texts, kTokens, 3);
  std::map<std::string, double> kinds;
  for (std::int64_t step = 0; step < 40; ++step) {
    const Batch batch = source.batch({.step = step, .micro_batch = 20, .sequence_length = 16});
    std::int64_t counted = 0;
    for (std::size_t row = 0; row < 20; ++row) {
      int told = 0;
      for (std::size_t i = 16 * row; i < 16 * (row + 1); ++i) {
        const std::int32_t token = batch.tokens[i], target = batch.targets[i];
        if (target < 0) continue;
        ++told;
        EXPECT_GE(target, 5);
        kinds[token == 3 ? "hidden" : token == target ? "kept" : "other"] += 1;
      }
      const int ordinary = batch.lengths[row] - 2;
      EXPECT_EQ(told, std::max(1, static_cast<int>(0.15 * ordinary + 0.5)));
      counted += told;
    }
    EXPECT_EQ(batch.step_rows, counted);
  }
  const double all = kinds["hidden"] + kinds["kept"] + kinds["other"];
  EXPECT_NEAR(kinds["hidden"] / all, 0.8, 0.04);
  EXPECT_NEAR(kinds["other"] / all, 0.1, 0.03);
}

TEST(MaskSource, EveryPartOfAStepKnowsAllItsTokens) {
  const MaskSource source(some_texts(50), kTokens, 3);
  const Batch whole = source.batch({.step = 2, .micro_batch = 8, .sequence_length = 16});
  Batch parts;
  for (int rank = 0; rank < 4; ++rank) {
    const Batch part = source.batch(
        {.step = 2, .rank = rank, .ranks = 4, .micro_batch = 2, .sequence_length = 16});
    EXPECT_EQ(part.step_rows, whole.step_rows);
    parts.tokens.insert(parts.tokens.end(), part.tokens.begin(), part.tokens.end());
    parts.targets.insert(parts.targets.end(), part.targets.begin(), part.targets.end());
  }
  EXPECT_EQ(parts.tokens, whole.tokens);
  EXPECT_EQ(parts.targets, whole.targets);
}

}  // namespace
}  // namespace zl
