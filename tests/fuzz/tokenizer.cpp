// tokenizer.json files. "text", which no tokenizer has, is what is encoded with it.
#include <nlohmann/json.hpp>

#include "core/data/text_stream.h"
#include "core/data/tokenizer.h"
#include "tests/fuzz/fuzz.h"

namespace {

std::string text_in(std::string_view bytes) {
  std::string text = "In the beginning\n\n God's 12345 <|im_end|> [MASK] e\u0301 \u65e5\xff";
  const auto spec = nlohmann::json::parse(bytes, nullptr, false);
  if (!spec.is_object()) return text;
  const auto found = spec.find("text");
  return found != spec.end() && found->is_string() ? text + found->get<std::string>() : text;
}

void use_tokenizer(const zl::Tokenizer& tokenizer, const std::string& text) {
  const auto plain = tokenizer.encode(text);
  tokenizer.decode(plain);  // throws where an id is out of range
  const auto whole = tokenizer.encode_input({.text = text, .pair = "a b"});
  zl::fuzz::require(whole.ids.size() == whole.types.size(), "an id without a type");
  tokenizer.decode(whole.ids);
  zl::TextStream stream(tokenizer);
  for (const std::int32_t id : whole.ids) stream.push(id);
  stream.finish();
}

}  // namespace

ZL_FUZZ_TARGET(tokenizer) {
  const std::string_view bytes = zl::fuzz::text_of(data, size);
  zl::fuzz::takes([&] {
    const auto path = zl::fuzz::files().write("tokenizer.json", bytes);
    const auto tokenizer = zl::load_tokenizer(path);  // refuses what is too deep to be parsed here
    use_tokenizer(*tokenizer, text_in(bytes));
  });
  return 0;
}
