// vocab.json with merges.txt, texts and .bin files. A zero byte ends the vocabulary (none: GPT-2's
// bytes), another one the merges; the rest is text and tokens.
#include <nlohmann/json.hpp>

#include "core/data/token_source.h"
#include "core/data/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::string utf8(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// Printable bytes are spelled as themselves, the others from U+0100 on; and two merged pairs.
std::string byte_vocabulary() {
  nlohmann::json vocabulary;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
    vocabulary[utf8(printable ? byte : next++)] = byte;
  }
  vocabulary["th"] = 256;
  vocabulary["the"] = 257;
  return vocabulary.dump();
}

// What is before the next zero byte, which is taken away.
std::string_view part(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view found = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return found;
}

void read_tokens(const std::string& path, const zl::Tokenizer& tokenizer, std::int64_t vocabulary) {
  zl::fuzz::takes([&] {
    const zl::TokenSource source = zl::TokenSource::open(path, tokenizer, vocabulary, 7);
    zl::BatchRequest request;
    request.ranks = 2;
    request.micro_batch = 2;
    request.sequence_length = 3;
    source.batch(request);
  });
}

}  // namespace

ZL_FUZZ_TARGET(tokens) {
  static const std::string standard = byte_vocabulary();
  std::string_view rest = zl::fuzz::text_of(data, size);
  const std::string_view vocabulary = part(rest), merges = part(rest);
  const zl::fuzz::Files& files = zl::fuzz::files();
  files.write("vocab.json", vocabulary.empty() ? standard : vocabulary);
  files.write("merges.txt", merges);
  const std::string text(rest), path = files.write("text.txt", text);
  zl::fuzz::takes([&] {
    const zl::Gpt2Tokenizer tokenizer(files.path(""));
    const auto ids = tokenizer.encode(text);
    zl::fuzz::require(tokenizer.decode(ids) == text, "another text after encoding and decoding");
    read_tokens(path, tokenizer, 300);
  });
  read_tokens(files.write("tokens.bin", text), zl::ByteTokenizer(), 1 + 300 * (size % 200));
  return 0;
}
