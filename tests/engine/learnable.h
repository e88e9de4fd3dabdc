// Tokens that a model can learn in a few steps, and what it means to have learned. On uniform
// random tokens a loss stays at ln(vocab) whatever the gradients are: a comparison of such losses
// by tolerance holds for wrong, random and missing gradients alike. Ownership: values. Threads:
// any.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/data/text_sources.h"
#include "core/data/token_source.h"
#include "core/model/model_config.h"
#include "tests/temp_folder.h"

namespace zl::test {

// A Markov chain: seven times in eight the successor among eight tokens, else any token. The loss
// falls from ln(vocab) below ln(8) + ln(vocab) / 8 as the eight tokens are known (a few steps), and
// to H(1/8) + ln(vocab) / 8 as their order is: 4.1, 2.6 and 0.9 for a vocabulary of 61.
inline TokenSource learnable_tokens(std::int64_t vocab, std::uint64_t seed = 7) {
  constexpr std::int64_t kKnown = 8, kLength = 4096;
  const std::int64_t stride = vocab / kKnown;
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<std::uint16_t> tokens;
  std::int64_t token = 0;
  for (std::int64_t i = 0; i < kLength; ++i) {
    const auto other = static_cast<std::int64_t>(random());
    token = random() % 8 == 0 ? other % vocab : (token / stride + 3) % kKnown * stride;
    tokens.push_back(static_cast<std::uint16_t>(token));
  }
  const TempFolder folder;  // removed once the source has mapped the file
  const std::string path = folder / "tokens.bin";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(tokens.data()), kLength * 2);
  return TokenSource::open(path, ByteTokenizer(), vocab, seed);
}

// Texts of 3 to 24 tokens, of two parts: seven times in eight the token that label and place tell,
// else any.
inline std::shared_ptr<const EncodedTexts> learnable_texts(std::int64_t vocab,
                                                           std::int64_t labels) {
  std::mt19937 random(5);
  std::vector<EncodedText> texts(60);
  for (EncodedText& text : texts) {
    const std::size_t size = 3 + random() % 22;
    text.label = static_cast<std::int32_t>(random() % static_cast<unsigned>(labels));
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t known = (static_cast<std::size_t>(text.label) * 3 + i) % 8;
      const std::size_t all = static_cast<std::size_t>(vocab), other = random();
      text.ids.push_back(
          static_cast<std::int32_t>(random() % 8 == 0 ? other % all : known * (all / 8)));
      text.types.push_back(i * 3 > size * 2 ? 1 : 0);
    }
  }
  return std::make_shared<const EncodedTexts>("texts", std::move(texts), 0, vocab);
}

// What a model of any head learns from.
inline std::unique_ptr<DataSource> learnable_data(const ModelConfig& model) {
  if (model.head == HeadKind::label) {
    return std::make_unique<LabelSource>(learnable_texts(model.vocab, model.labels), model.labels,
                                         7);
  }
  return std::make_unique<TokenSource>(learnable_tokens(model.vocab));
}

// Of one run: the last loss is at most `share` of the first. Without it a comparison by tolerance
// says nothing.
inline void expect_learned(const std::vector<double>& loss, double share,
                           const std::string& what = "") {
  ASSERT_GT(loss.size(), 1u) << what;
  EXPECT_TRUE(std::all_of(loss.begin(), loss.end(), [](double x) { return std::isfinite(x); }))
      << what;
  EXPECT_LT(loss.back(), share * loss.front()) << what << ": nothing was learned";
}

// First loss less the mean of the last quarter: smooth where single batches are not.
inline double fall(const std::vector<double>& loss) {
  const auto last = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, loss.size() / 4));
  return loss.front() -
         std::accumulate(loss.end() - last, loss.end(), 0.0) / static_cast<double>(last);
}

// For methods that train nearly as a reference: the reference's loss falls by a third, that of the
// method by as much but for `tolerance` of it.
inline void expect_falls_alike(const std::vector<double>& loss,
                               const std::vector<double>& reference, double tolerance,
                               const std::string& what = "") {
  ASSERT_EQ(loss.size(), reference.size()) << what;
  EXPECT_GT(fall(reference), reference.front() / 3) << what << ": nothing was learned";
  EXPECT_NEAR(fall(loss), fall(reference), tolerance * fall(reference)) << what;
}

}  // namespace zl::test
