// Sampling against transformers' probabilities, and draws that depend on nothing
// but their key.
#include "core/inference/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"

namespace zl {
namespace {

struct Case {
  SamplingConfig config;
  std::vector<std::int32_t> before;
};

// By the name in the golden file.
const std::map<std::string, Case> kCases{
    {"temperature 0.5", {{.temperature = 0.5}, {}}},
    {"top_k 3 (tie at the k-th: ids 1 and 2)", {{.top_k = 3}, {}}},
    {"top_k 4", {{.top_k = 4}, {}}},
    {"top_p 0.9", {{.top_p = 0.9}, {}}},
    {"top_p 0.01", {{.top_p = 0.01}, {}}},
    {"min_p 0.1", {{.min_p = 0.1}, {}}},
    {"repetition 1.3 on prefix 7,3,3", {{.repetition_penalty = 1.3}, {7, 3, 3}}},
    {"repetition 1.3 on prefix 6 (negative logit)", {{.repetition_penalty = 1.3}, {6}}},
};

TEST(Sampler, ProbabilitiesAreThoseOfTransformers) {
  const auto golden = nlohmann::json::parse(
      read_file(std::string(ZL_SOURCE_DIR) + "/tests/golden/models/sampling.json"));
  const auto logits = golden["logits"].get<std::vector<float>>();
  std::size_t compared = 0;
  for (const auto& each : golden["cases"]) {
    const auto found = kCases.find(each["name"].get<std::string>());
    if (found == kCases.end()) continue;
    ++compared;
    const auto kept = token_probabilities(logits, found->second.before, found->second.config);
    std::vector<std::int32_t> tokens;
    for (const TokenProbability& one : kept) {
      tokens.push_back(one.token);
      EXPECT_NEAR(one.probability, each["probs"][static_cast<std::size_t>(one.token)].get<double>(),
                  1e-6)
          << each["name"];
    }
    EXPECT_EQ(tokens, each["kept"].get<std::vector<std::int32_t>>()) << each["name"];
  }
  EXPECT_EQ(compared, kCases.size());
}

// PyTorch's sort puts one of two equal logits first or the other; here it is the smaller id.
TEST(Sampler, TopPPrefersTheSmallerOfEqualIds) {
  const std::vector<float> logits{2, 1, 1, 0.5, 0, -1, -2, 3};
  std::vector<std::int32_t> tokens;
  for (const auto& one : token_probabilities(logits, {}, {.top_p = 0.8})) {
    tokens.push_back(one.token);
  }
  EXPECT_EQ(tokens, (std::vector<std::int32_t>{0, 1, 7}));
}

TEST(Sampler, FiltersWorkInTheirOrder) {
  const std::vector<float> logits{2, 1, 1, 0.5, 0, -1, -2, 3};
  const SamplingConfig all{
      .temperature = 0.7, .top_k = 5, .top_p = 0.85, .min_p = 0.05, .repetition_penalty = 1.3};
  std::map<std::int32_t, double> found;
  for (const auto& one : token_probabilities(logits, std::vector<std::int32_t>{7, 3, 3}, all)) {
    found[one.token] = one.probability;
  }
  ASSERT_EQ(found.size(), 3u);  // top-p before the temperature keeps four
  EXPECT_NEAR(found[0], 0.358208, 1e-6);
  EXPECT_NEAR(found[1], 0.085845, 1e-6);
  EXPECT_NEAR(found[7], 0.555947, 1e-6);
}

TEST(Sampler, GreedyTakesTheSmallestOfTheBest) {
  EXPECT_EQ(next_token(std::vector<float>{1, 4, 4, 2}, {}, {.temperature = 0}, 0, 0), 1);
}

// Chi-squared of 100,000 draws against the probabilities, 7 degrees of freedom: 29.9 is p = 1e-4.
TEST(Sampler, DrawsHaveTheirProbabilities) {
  const std::vector<float> logits{2, 1, 1, 0.5, 0, -1, -2, 3};
  const auto expected = token_probabilities(logits, {}, {});
  std::vector<double> counts(logits.size());
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[static_cast<std::size_t>(next_token(logits, {}, {.seed = 5},
                                                 static_cast<std::uint64_t>(i % 7),
                                                 static_cast<std::uint64_t>(i)))];
  }
  double chi = 0;
  for (const TokenProbability& one : expected) {
    const double wanted = one.probability * kDraws;
    const double off = counts[static_cast<std::size_t>(one.token)] - wanted;
    chi += off * off / wanted;
  }
  EXPECT_LT(chi, 29.9);
}

TEST(Sampler, ADrawDependsOnItsKeyAlone) {
  const std::vector<float> logits(64, 0.0F);
  const auto drawn = [&](std::uint64_t seed, std::uint64_t sequence) {
    std::vector<std::int32_t> tokens;
    for (std::uint64_t i = 0; i < 16; ++i) {
      tokens.push_back(next_token(logits, {}, {.seed = seed}, sequence, i));
    }
    return tokens;
  };
  EXPECT_EQ(drawn(1, 2), drawn(1, 2));
  EXPECT_NE(drawn(1, 2), drawn(1, 3));
  EXPECT_NE(drawn(1, 2), drawn(2, 2));
}

TEST(Sampler, BadOptionsAndLogitsAreNamed) {
  for (const SamplingConfig& bad :
       {SamplingConfig{.temperature = -1}, SamplingConfig{.top_k = -1}, SamplingConfig{.top_p = 0},
        SamplingConfig{.top_p = 1.5}, SamplingConfig{.min_p = 1},
        SamplingConfig{.repetition_penalty = 0}}) {
    EXPECT_THROW(bad.check(), Error);
  }
  EXPECT_NO_THROW(SamplingConfig().check());
  const std::vector<float> broken{1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(next_token(broken, {}, {}, 0, 0), Error);
}

}  // namespace
}  // namespace zl
