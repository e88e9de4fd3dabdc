#include "core/inference/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/error.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"

namespace zl {
namespace {

constexpr double kOut = -std::numeric_limits<double>::infinity();

void require(bool ok, const std::string& message) {
  if (!ok) throw Error(ErrorCode::invalid, message);
}

// Once for every token that occurs, however often.
void penalize(std::vector<double>& scores, std::span<const std::int32_t> before, double penalty) {
  if (penalty == 1) return;
  std::vector<std::int32_t> seen(before.begin(), before.end());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const std::int32_t token : seen) {
    if (token < 0 || token >= static_cast<std::int32_t>(scores.size())) continue;
    double& score = scores[static_cast<std::size_t>(token)];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

void keep_top_k(std::vector<double>& scores, std::int64_t k) {
  if (k <= 0 || k >= static_cast<std::int64_t>(scores.size())) return;
  std::vector<double> sorted = scores;
  std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<>());
  const double least = sorted[static_cast<std::size_t>(k - 1)];
  for (double& score : scores) {
    if (score < least) score = kOut;
  }
}

// Of what is left: the softmax.
std::vector<double> softmax(const std::vector<double>& scores) {
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::vector<double> probabilities(scores.size());
  double sum = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    probabilities[i] = std::exp(scores[i] - largest);
    sum += probabilities[i];
  }
  for (double& probability : probabilities) probability /= sum;
  return probabilities;
}

// The smallest set of the most likely tokens that has at least p, and always the best one.
void keep_top_p(std::vector<double>& scores, double p) {
  if (p >= 1) return;
  const std::vector<double> probabilities = softmax(scores);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != kOut) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  double sum = 0;
  for (const std::size_t token : order) {
    if (sum >= p && sum > 0) scores[token] = kOut;
    sum += probabilities[token];
  }
}

void keep_min_p(std::vector<double>& scores, double p) {
  if (p <= 0) return;
  const double least = *std::max_element(scores.begin(), scores.end()) + std::log(p);
  for (double& score : scores) {
    if (score < least) score = kOut;
  }
}

std::int32_t most_likely(const std::vector<double>& scores) {
  return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

std::vector<double> scores_of(std::span<const float> logits, std::span<const std::int32_t> before,
                              const SamplingConfig& config) {
  std::vector<double> scores(logits.begin(), logits.end());
  const bool finite =
      std::none_of(scores.begin(), scores.end(), [](double score) { return std::isnan(score); }) &&
      std::any_of(scores.begin(), scores.end(), [](double score) { return std::isfinite(score); });
  if (!finite) {
    throw Error(ErrorCode::failed,
                "the logits are not finite: the weights are damaged, or their type overflows");
  }
  penalize(scores, before, config.repetition_penalty);
  return scores;
}

void filter(std::vector<double>& scores, const SamplingConfig& config) {
  for (double& score : scores) score /= config.temperature;
  keep_top_k(scores, config.top_k);
  keep_top_p(scores, config.top_p);
  keep_min_p(scores, config.min_p);
}

}  // namespace

void SamplingConfig::check() const {
  require(temperature >= 0 && std::isfinite(temperature),
          "temperature: " + std::to_string(temperature) + " is not 0 (greedy) or more");
  require(top_k >= 0, "top_k: " + std::to_string(top_k) + " is not 0 (off) or more");
  require(top_p > 0 && top_p <= 1, "top_p: " + std::to_string(top_p) + " is not above 0 and to 1");
  require(min_p >= 0 && min_p < 1, "min_p: " + std::to_string(min_p) + " is not from 0 to below 1");
  require(repetition_penalty > 0 && std::isfinite(repetition_penalty),
          "repetition_penalty: " + std::to_string(repetition_penalty) + " is not above 0");
}

std::vector<TokenProbability> token_probabilities(std::span<const float> logits,
                                                  std::span<const std::int32_t> before,
                                                  const SamplingConfig& config) {
  std::vector<double> scores = scores_of(logits, before, config);
  if (config.temperature == 0) return {{most_likely(scores), 1.0}};
  filter(scores, config);
  const std::vector<double> probabilities = softmax(scores);
  std::vector<TokenProbability> kept;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] != kOut) kept.push_back({static_cast<std::int32_t>(i), probabilities[i]});
  }
  return kept;
}

std::int32_t next_token(std::span<const float> logits, std::span<const std::int32_t> before,
                        const SamplingConfig& config, std::uint64_t sequence,
                        std::uint64_t position) {
  const std::vector<TokenProbability> kept = token_probabilities(logits, before, config);
  if (kept.size() == 1) return kept.front().token;
  const RngKey key{config.seed, static_cast<std::uint32_t>(sequence), kGenerationStream};
  const double drawn = random_uniform(key, position);
  double sum = 0;
  for (const TokenProbability& each : kept) {
    sum += each.probability;
    if (drawn < sum) return each.token;
  }
  return kept.back().token;  // what rounding left
}

}  // namespace zl
