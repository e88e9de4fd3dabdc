#include "core/data/token_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/random_streams.h"
#include "core/base/rng.h"

namespace zl {
namespace {

static_assert(std::endian::native == std::endian::little, ".bin files are little-endian");

constexpr std::size_t kHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::int32_t kMagic = 20240520;
constexpr std::int32_t kLlama3Magic = 20240801;  // the same layout with uint32 tokens

[[noreturn]] void invalid(const std::string& name, const std::string& defect) {
  throw Error(ErrorCode::invalid, name + ": " + defect);
}

std::span<const std::byte> map_file(const std::string& path, std::shared_ptr<const void>& keeper) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    invalid(path, std::string("cannot open it (") + std::strerror(errno) + "); check the path");
  }
  struct stat info {};
  const bool is_file = ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = MAP_FAILED;
  if (is_file && size > 0) data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (!is_file) invalid(path, "is not a regular file");
  if (size == 0) invalid(path, "is empty");
  if (data == MAP_FAILED) invalid(path, std::string("cannot map it: ") + std::strerror(errno));
  keeper = {data, [size](void* address) { ::munmap(address, size); }};
  return {static_cast<const std::byte*>(data), size};
}

// The bytes behind an llm.c header, checked against it; all bytes when there is none.
std::span<const std::byte> skip_header(const std::string& name, std::span<const std::byte> bytes) {
  std::int32_t header[3] = {};  // magic, version, number of tokens
  std::memcpy(header, bytes.data(), std::min(bytes.size(), sizeof(header)));
  if (header[0] == kLlama3Magic) {
    invalid(name, "holds uint32 tokens (magic 20240801); only uint16 tokens are read");
  }
  if (header[0] != kMagic) return bytes;
  if (bytes.size() < kHeaderBytes) {
    invalid(name, "truncated: " + std::to_string(bytes.size()) + " bytes of a 1024-byte header");
  }
  if (header[1] != 1) {
    invalid(name, "header version " + std::to_string(header[1]) + " is not 1");
  }
  const std::span<const std::byte> body = bytes.subspan(kHeaderBytes);
  const auto expected = 2 * static_cast<std::int64_t>(header[2]);
  if (expected != static_cast<std::int64_t>(body.size())) {
    const bool is_short = expected > static_cast<std::int64_t>(body.size());
    invalid(name, std::string(is_short ? "truncated: " : "") + "the header promises " +
                      std::to_string(header[2]) + " tokens, the file has " +
                      std::to_string(body.size() / 2));
  }
  return body;
}

template <class T>
void check_ids_of(const std::string& name, std::span<const T> tokens, std::int64_t vocab) {
  const auto bad = std::find_if(tokens.begin(), tokens.end(),
                                [vocab](T token) { return token < 0 || token >= vocab; });
  if (bad == tokens.end()) return;
  invalid(name, "token " + std::to_string(bad - tokens.begin()) + " has id " +
                    std::to_string(*bad) + ", beyond the model's vocabulary of " +
                    std::to_string(vocab) + "; use the tokenizer the model was made for");
}

std::uint64_t random64(std::uint64_t seed, std::uint32_t stream, std::int64_t step,
                       std::int64_t sample) {
  const std::uint64_t high = (std::uint64_t{stream} << 32) | static_cast<std::uint32_t>(step);
  const Philox4 words = philox(seed, static_cast<std::uint64_t>(sample), high);
  return (std::uint64_t{words.word[0]} << 32) | words.word[1];
}

template <class T>
void copy_window(std::span<const T> tokens, std::size_t start, std::size_t length,
                 std::int32_t* inputs, std::int32_t* targets) {
  const auto window = tokens.subspan(start, length + 1);
  std::copy(window.begin(), window.end() - 1, inputs);
  std::copy(window.begin() + 1, window.end(), targets);
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
    source.map_bin();
  } else {
    source.adopt_text(tokenizer);
  }
  source.check_ids();
  return source;
}

TokenSource TokenSource::synthetic(std::int64_t vocab, std::uint64_t seed) {
  return TokenSource("synthetic tokens", vocab, seed);
}

void TokenSource::adopt_text(const Tokenizer& tokenizer) {
  const std::string text = read_file(name_);
  if (text.empty()) invalid(name_, "is empty");
  std::vector<std::int32_t> tokens = tokenizer.encode(text);
  if (tokenizer.vocab() <= 65536) {
    auto kept = std::make_shared<std::vector<std::uint16_t>>(tokens.begin(), tokens.end());
    narrow_ = *kept;
    storage_ = std::move(kept);
  } else {
    auto kept = std::make_shared<std::vector<std::int32_t>>(std::move(tokens));
    wide_ = *kept;
    storage_ = std::move(kept);
  }
}

void TokenSource::map_bin() {
  const std::span<const std::byte> body = skip_header(name_, map_file(name_, storage_));
  if (body.empty()) invalid(name_, "holds no tokens");
  if (body.size() % 2 != 0) {
    invalid(name_, "truncated: " + std::to_string(body.size()) +
                       " bytes are no whole number of uint16 tokens");
  }
  narrow_ = {reinterpret_cast<const std::uint16_t*>(body.data()), body.size() / 2};
}

void TokenSource::check_ids() const {
  check_ids_of(name_, narrow_, vocab_);
  check_ids_of(name_, wide_, vocab_);
}

void TokenSource::require(std::int64_t sequence_length) const {
  ZL_CHECK(sequence_length > 0, "a sample needs a positive sequence length");
  if (storage_ == nullptr || tokens() > sequence_length) return;
  invalid(name_, "holds " + std::to_string(tokens()) + " tokens, sequence_length " +
                     std::to_string(sequence_length) + " needs at least " +
                     std::to_string(sequence_length + 1) +
                     "; give a longer text or a smaller --sequence-length");
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
  if (storage_ == nullptr) {
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
  if (wide_.empty()) {
    copy_window(narrow_, start, length, inputs, targets);
  } else {
    copy_window(wide_, start, length, inputs, targets);
  }
}

}  // namespace zl
