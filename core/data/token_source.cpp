#include "core/data/token_source.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"

namespace zl {
namespace {

constexpr std::int64_t kMaxTextBytes = std::int64_t{4} << 30;  // its tokens take four times that

[[noreturn]] void invalid(const std::string& name, const std::string& defect) {
  throw Error(ErrorCode::invalid, name + ": " + defect);
}

void check_ids(const std::string& name, std::span<const std::int32_t> tokens, std::int64_t first,
               std::int64_t vocab) {
  const auto bad = std::find_if(tokens.begin(), tokens.end(), [vocab](std::int32_t token) {
    return token < 0 || token >= vocab;
  });
  if (bad == tokens.end()) return;
  invalid(name, "token " + std::to_string(first + (bad - tokens.begin())) + " has id " +
                    std::to_string(*bad) + ", beyond the model's vocabulary of " +
                    std::to_string(vocab) + "; use the tokenizer the model was made for");
}

std::string text_of(const std::string& path) {
  const InputFile file(path);
  if (file.size() == 0) invalid(path, "is empty");
  if (file.size() > kMaxTextBytes) {
    invalid(path, "has more than " + format_bytes(kMaxTextBytes) +
                      ", the most that is read of a text; tokenise it into a .bin file");
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

std::uint64_t random64(std::uint64_t seed, std::uint32_t stream, std::int64_t step,
                       std::int64_t sample) {
  const std::uint64_t high = (std::uint64_t{stream} << 32) | static_cast<std::uint32_t>(step);
  const Philox4 words = philox(seed, static_cast<std::uint64_t>(sample), high);
  return (std::uint64_t{words.word[0]} << 32) | words.word[1];
}

}  // namespace

TokenSource::TokenSource(std::string name, std::int64_t vocab, std::uint64_t seed)
    : name_(std::move(name)), vocab_(vocab), seed_(seed) {
  if (vocab_ < 1) {
    invalid("model.vocab", std::to_string(vocab_) + " is not a positive number of tokens");
  }
}

TokenSource TokenSource::open(const std::string& path, const Tokenizer& tokenizer,
                              std::int64_t vocab, std::uint64_t seed) {
  TokenSource source(path, vocab, seed);
  if (path.ends_with(".bin")) {
    source.store_ = open_tokens(path);
  } else {
    source.store_ = keep_tokens(tokenizer.encode(text_of(path)), tokenizer.vocab());
  }
  source.check();
  return source;
}

TokenSource TokenSource::synthetic(std::int64_t vocab, std::uint64_t seed) {
  return TokenSource("synthetic tokens", vocab, seed);
}

// One pass over all tokens: every id is one of the model's, and what they are in short.
void TokenSource::check() {
  constexpr std::int64_t kAtOnce = 1 << 16;
  std::vector<std::int32_t> part;
  std::uint32_t checksum = 0;
  for (std::int64_t start = 0; start < tokens(); start += kAtOnce) {
    part.resize(static_cast<std::size_t>(std::min(kAtOnce, tokens() - start)));
    store_->read(start, part);
    check_ids(name_, part, start, vocab_);
    const auto bytes = std::as_bytes(std::span(part));
    checksum = crc32c(bytes.data(), static_cast<std::int64_t>(bytes.size()), checksum);
  }
  char text[64];
  std::snprintf(text, sizeof text, "%lld tokens, crc32c %08x", static_cast<long long>(tokens()),
                checksum);
  fingerprint_ = text;
}

void TokenSource::require(std::int64_t sequence_length) const {
  ZL_CHECK(sequence_length > 0, "a sample needs a positive sequence length");
  if (store_ == nullptr || tokens() > sequence_length) return;
  invalid(name_, "holds " + std::to_string(tokens()) + " tokens, sequence_length " +
                     std::to_string(sequence_length) + " needs at least " +
                     std::to_string(sequence_length + 1) +
                     "; give a longer text or a smaller --sequence-length");
}

std::shared_ptr<const TextWindows> TokenSource::windows(const WindowPlan& plan) const {
  if (store_ == nullptr) {
    invalid(name_, "have no end, so they judge nothing; give a text or a .bin of tokens");
  }
  if (tokens() < 2) invalid(name_, "holds one token, and nothing is predicted of it");
  return std::make_shared<TextWindows>(store_, plan);
}

Batch TokenSource::batch(const BatchRequest& request) const {
  const std::int64_t length = request.sequence_length;
  require(length);
  ZL_CHECK(
      request.step >= 0 && request.micro >= 0 && request.rank >= 0 && request.rank < request.ranks,
      "no such rank or step");
  const auto ids = static_cast<std::size_t>(request.micro_batch * length);
  Batch batch{std::vector<std::int32_t>(ids), std::vector<std::int32_t>(ids)};
  for (std::int64_t row = 0; row < request.micro_batch; ++row) {
    read_sample(request.step, request.first_sample() + row, length,
                batch.tokens.data() + row * length, batch.targets.data() + row * length);
  }
  return batch;
}

void TokenSource::read_sample(std::int64_t step, std::int64_t sample, std::int64_t sequence_length,
                              std::int32_t* inputs, std::int32_t* targets) const {
  const auto length = static_cast<std::size_t>(sequence_length);
  if (store_ == nullptr) {
    const std::uint64_t key = random64(seed_, kSyntheticStream, step, sample);
    for (std::size_t i = 0; i <= length; ++i) {
      const std::uint64_t bits = random64(key, kSyntheticStream, 0, static_cast<std::int64_t>(i));
      const auto token = static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(vocab_));
      if (i < length) inputs[i] = token;
      if (i > 0) targets[i - 1] = token;
    }
    return;
  }
  const auto starts = static_cast<std::uint64_t>(tokens() - sequence_length);
  const std::uint64_t start = random64(seed_, kSampleStream, step, sample) % starts;
  std::vector<std::int32_t> window(length + 1);
  store_->read(static_cast<std::int64_t>(start), window);
  std::copy(window.begin(), window.end() - 1, inputs);
  std::copy(window.begin() + 1, window.end(), targets);
}

}  // namespace zl
