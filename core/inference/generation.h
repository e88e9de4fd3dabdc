// Prompts continued: prefill, then token by token, until each has ended.
// Ownership: values. Threads: one rank's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/inference/generator.h"
#include "core/inference/sampler.h"

namespace zl {

struct GenerationOptions {
  std::int64_t max_tokens = 128;              // of each output
  std::vector<std::int32_t> stop;             // tokens that end an output, as its last
  SamplingConfig sampling = {};               // temperature 0: greedy
  const std::atomic<bool>* cancel = nullptr;  // when it turns true, the outputs end a token later
  // Of ranks that make one text together: where the one that has `cancel` tells the others which
  // step is the last. No rank is through a step that another has not begun.
  std::atomic<int>* last_step = nullptr;
  // Called for each token as it comes: the number of the prompt, and the token.
  std::function<void(int sequence, std::int32_t token)> on_token;
};

struct Generated {
  std::vector<std::vector<std::int32_t>> outputs;  // by prompt
  std::int64_t prompt_tokens = 0, output_tokens = 0;
  // By the clock: until the first tokens are there, and for those after.
  double prefill_seconds = 0, decode_seconds = 0;
  std::int64_t decoded_tokens = 0;  // in decode_seconds
};

// One sequence of the generator for each prompt, which are not empty. Of a device that records,
// step 1 of the trace is the prefill, step 1 + i makes the tokens that come after.
Generated generate(Generator& generator, const std::vector<std::vector<std::int32_t>>& prompts,
                   const GenerationOptions& options);

}  // namespace zl
