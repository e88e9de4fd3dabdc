#include "core/data/encoded_texts.h"

#include <algorithm>
#include <cstdio>
#include <span>
#include <utility>

#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "core/data/epoch_order.h"

namespace zl {
namespace {

std::uint32_t checksum_of(const std::vector<std::int32_t>& values, std::uint32_t so_far) {
  const auto bytes = std::as_bytes(std::span(values));
  return crc32c(bytes.data(), static_cast<std::int64_t>(bytes.size()), so_far);
}

std::string fingerprint_of(const std::vector<EncodedText>& texts) {
  std::uint32_t checksum = 0;
  std::size_t tokens = 0;
  for (const EncodedText& text : texts) {
    tokens += text.ids.size();
    checksum = checksum_of(text.ids, checksum);
    checksum = checksum_of(text.types, checksum);
    checksum = checksum_of({text.label}, checksum);
  }
  char line[96];
  std::snprintf(line, sizeof line, "%zu texts, %zu tokens, crc32c %08x", texts.size(), tokens,
                checksum);
  return line;
}

}  // namespace

EncodedText encode_text(const Tokenizer& tokenizer, const TextInput& input, std::int64_t most) {
  TokenizedInput tokens = tokenizer.encode_input(input);
  EncodedText text{std::move(tokens.ids), std::move(tokens.types), -1};
  text.types.resize(text.ids.size());
  while (static_cast<std::int64_t>(text.ids.size()) > most && text.ids.size() > 1) {
    const auto second = std::find(text.types.begin(), text.types.end(), 1);
    const auto first_size = second - text.types.begin(), second_size = text.types.end() - second;
    const auto last = first_size >= second_size ? first_size : first_size + second_size;
    const auto at = std::max<std::ptrdiff_t>(last - 2, 0);  // before the special token at its end
    text.ids.erase(text.ids.begin() + at);
    text.types.erase(text.types.begin() + at);
  }
  return text;
}

EncodedTexts::EncodedTexts(std::string name, std::vector<EncodedText> texts, std::int32_t pad,
                           std::int64_t vocab)
    : name_(std::move(name)), texts_(std::move(texts)), pad_(pad) {
  if (texts_.empty()) throw Error(ErrorCode::invalid, name_ + ": has no text");
  for (std::size_t i = 0; i < texts_.size(); ++i) {
    for (const std::int32_t id : texts_[i].ids) {
      if (id >= 0 && id < vocab) continue;
      throw Error(ErrorCode::invalid,
                  name_ + ": text " + std::to_string(i + 1) + " has the token " +
                      std::to_string(id) + ", beyond the model's vocabulary of " +
                      std::to_string(vocab) + "; use the tokenizer the model was made for");
    }
  }
  fingerprint_ = fingerprint_of(texts_);
}

Batch EncodedTexts::rows(const std::vector<std::int64_t>& texts, std::int64_t length) const {
  Batch batch;
  const std::size_t ids = texts.size() * static_cast<std::size_t>(length);
  batch.tokens.assign(ids, pad_);
  batch.segments.assign(ids, 0);
  for (std::size_t row = 0; row < texts.size(); ++row) {
    batch.lengths.push_back(0);
    if (texts[row] < 0) continue;
    const EncodedText& text = (*this)[texts[row]];
    const auto size = static_cast<std::int64_t>(text.ids.size());
    if (size > length) {
      throw Error(ErrorCode::invalid, name_ + ": text " + std::to_string(texts[row] + 1) + " has " +
                                          std::to_string(size) + " tokens, more than " +
                                          std::to_string(length));
    }
    const auto first = static_cast<std::ptrdiff_t>(row) * length;
    std::copy(text.ids.begin(), text.ids.end(), batch.tokens.begin() + first);
    std::copy(text.types.begin(), text.types.end(), batch.segments.begin() + first);
    batch.lengths.back() = static_cast<std::int32_t>(size);
  }
  return batch;
}

std::vector<std::int64_t> texts_of(const EncodedTexts& texts, const BatchRequest& request,
                                   std::uint64_t seed) {
  const std::int64_t first = request.step * request.samples() + request.first_sample();
  std::vector<std::int64_t> numbers;
  for (std::int64_t row = 0; row < request.micro_batch; ++row) {
    numbers.push_back(sample_at(texts.size(), seed, first + row));
  }
  return numbers;
}

}  // namespace zl
