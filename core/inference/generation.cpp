#include "core/inference/generation.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace zl {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The prompts that have not ended, and what each has said.
class Conversation {
 public:
  Conversation(Generator& generator, const std::vector<std::vector<std::int32_t>>& prompts,
               const GenerationOptions& options)
      : generator_(generator),
        options_(options),
        last_step_(options.last_step == nullptr ? own_last_step_ : *options.last_step),
        texts_(prompts) {
    made_.outputs.resize(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      made_.prompt_tokens += static_cast<std::int64_t>(prompts[i].size());
      running_.push_back(static_cast<int>(i));
      fresh_.push_back(prompts[i]);
    }
  }

  bool goes_on_after(int step) const { return !running_.empty() && step < last_step_.load(); }

  // One forward of all that go on, and a token for each.
  void take(int step) {
    generator_.begin_step(step);
    if (options_.cancel != nullptr && options_.cancel->load()) last_step_ = step;
    std::vector<Generator::Extension> extensions;
    for (const int each : running_) {
      extensions.push_back({each, fresh_[static_cast<std::size_t>(each)]});
    }
    const auto logits = generator_.extend(extensions);
    std::vector<int> left;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (!add(running_[i], logits[i])) left.push_back(running_[i]);
    }
    running_ = std::move(left);
  }

  Generated& made() { return made_; }

 private:
  // Whether the sequence has ended.
  bool add(int sequence, const std::vector<float>& logits) {
    const auto index = static_cast<std::size_t>(sequence);
    std::vector<std::int32_t>& text = texts_[index];
    const std::int32_t token = next_token(logits, text, options_.sampling,
                                          static_cast<std::uint64_t>(sequence), text.size());
    text.push_back(token);
    fresh_[index] = {token};
    made_.outputs[index].push_back(token);
    ++made_.output_tokens;
    if (options_.on_token) options_.on_token(sequence, token);
    return std::ranges::find(options_.stop, token) != options_.stop.end() ||
           static_cast<std::int64_t>(made_.outputs[index].size()) >= options_.max_tokens;
  }

  Generator& generator_;
  const GenerationOptions& options_;
  std::atomic<int> own_last_step_ = std::numeric_limits<int>::max();
  std::atomic<int>& last_step_;
  std::vector<std::vector<std::int32_t>> texts_;  // prompt and output
  std::vector<std::vector<std::int32_t>> fresh_;  // what the cache has not seen
  std::vector<int> running_;
  Generated made_;
};

}  // namespace

Generated generate(Generator& generator, const std::vector<std::vector<std::int32_t>>& prompts,
                   const GenerationOptions& options) {
  options.sampling.check();
  Conversation conversation(generator, prompts, options);
  Generated& made = conversation.made();
  if (options.max_tokens < 1) return made;
  auto start = Clock::now();
  conversation.take(1);
  made.prefill_seconds = seconds_since(start);
  const std::int64_t first = made.output_tokens;
  start = Clock::now();
  for (int step = 2; conversation.goes_on_after(step - 1); ++step) conversation.take(step);
  made.decode_seconds = seconds_since(start);
  made.decoded_tokens = made.output_tokens - first;
  return made;
}

}  // namespace zl
