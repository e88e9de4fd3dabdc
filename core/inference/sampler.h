// Which token comes next: filters of logits and a draw, as transformers has them.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zl {

// In the order in which they work (transformers 5.23, generation/utils.py): repetition penalty,
// temperature, top-k, top-p, min-p. Each sees what the one before it left.
struct SamplingConfig {
  double temperature = 1;         // 0: the most likely token (greedy); nothing is drawn then
  std::int64_t top_k = 0;         // 0: off. Tokens as likely as the k-th stay with it.
  double top_p = 1;               // 1: off
  double min_p = 0;               // 0: off; of the most likely token's probability
  double repetition_penalty = 1;  // 1: off (Keskar et al. 2019)
  std::uint64_t seed = 0;

  // Throws Error{invalid} naming the option and what it may be.
  void check() const;
};

struct TokenProbability {
  std::int32_t token = 0;
  double probability = 0;
};

// The tokens that may come next with their probabilities, by id; of equal logits top-p prefers the
// smaller id. before: prompt and output so far, for the repetition penalty. Without any number
// above -inf, or with a NaN: Error{failed}.
std::vector<TokenProbability> token_probabilities(std::span<const float> logits,
                                                  std::span<const std::int32_t> before,
                                                  const SamplingConfig& config);

// The next token. The draw depends on (seed, sequence, position) alone, never on what else is
// generated beside it: `sequence` is the number of the prompt, `position` that of the token in it.
// Greedy: the smallest id among equals.
std::int32_t next_token(std::span<const float> logits, std::span<const std::int32_t> before,
                        const SamplingConfig& config, std::uint64_t sequence,
                        std::uint64_t position);

}  // namespace zl
