// Tokenizers from tokenizer.json against ids of Hugging Face's tokenizers and sentencepiece. The
// vocabularies in tests/golden are those of GPT-2, SmolLM2 and BERT, without what the texts there
// never use; sentencepiece.json is whole.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/data/gpt2_split.h"
#include "core/data/text/known_split.h"
#include "core/data/text/regex.h"
#include "core/data/text/unicode_text.h"
#include "core/data/tokenizer.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

using Json = nlohmann::json;
using TokenIds = std::vector<std::int32_t>;

const std::string kGolden = ZL_SOURCE_DIR "/tests/golden/models/tokenizers/";

Json golden_file(const std::string& name) {
  std::ifstream in(kGolden + name);
  return Json::parse(in);
}

TokenIds ids_of(const Tokenizer& tokenizer, const std::string& text,
                AddedTokens added = AddedTokens::all) {
  return tokenizer.encode_input({.text = text, .added = added}).ids;
}

void expect_golden(const Tokenizer& tokenizer, const Json& strings, const Json& ids,
                   AddedTokens added = AddedTokens::all) {
  ASSERT_EQ(strings.size(), ids.size());
  for (std::size_t i = 0; i < strings.size(); ++i) {
    const std::string text = strings[i];
    EXPECT_EQ(ids_of(tokenizer, text, added), ids[i].get<TokenIds>()) << i << ": " << text;
  }
}

TEST(TokenizerGolden, Gpt2) {
  const Json all = golden_file("ids.json");
  const auto tokenizer = load_tokenizer(kGolden + "gpt2.json");
  EXPECT_EQ(tokenizer->vocab(), 50257);
  expect_golden(*tokenizer, all["strings"], all["ids"]["gpt2 (with <|endoftext|> recognised)"]);
  expect_golden(*tokenizer, all["strings"], all["ids"]["gpt2 (no special tokens in text)"],
                AddedTokens::ordinary);
  for (const std::string text : all["strings"]) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

TEST(TokenizerGolden, SmolLM2) {
  const Json all = golden_file("ids.json");
  const auto tokenizer = load_tokenizer(kGolden + "smollm2.json");
  expect_golden(*tokenizer, all["strings"], all["ids"]["smollm2 (specials recognised)"]);
  EXPECT_TRUE(tokenizer->is_special(1));
  EXPECT_EQ(tokenizer->id_of("<|im_end|>"), 2);
}

TEST(TokenizerGolden, Bert) {
  if (!has_unicode_text()) GTEST_SKIP() << "this build has no utf8proc";
  const Json all = golden_file("ids.json");
  const auto tokenizer = load_tokenizer(kGolden + "bert.json");
  const Json& ids = all["ids"];
  expect_golden(*tokenizer, all["strings"],
                ids["bert-uncased (with [CLS]..[SEP], added tokens recognised)"]);
  const TokenizedInput pair = tokenizer->encode_input({.text = "Who wept?", .pair = "Jesus wept."});
  const Json& wanted = ids["bert pair Who wept? / Jesus wept."];
  EXPECT_EQ(pair.ids, wanted["ids"].get<TokenIds>());
  EXPECT_EQ(pair.types, wanted["type_ids"].get<TokenIds>());
}

TEST(TokenizerGolden, SentencePieceWithBytes) {
  const Json all = golden_file("sentencepiece_ids.json");
  const auto tokenizer = load_tokenizer(kGolden + "sentencepiece.json");
  expect_golden(*tokenizer, all["strings"], all["ids"]);
  for (const std::string text : all["strings"]) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
}

// SentencePiece's other spelling in tokenizer.json: Metaspace without a normalizer.
TEST(TokenizerGolden, SentencePieceWithMetaspace) {
  const Json all = golden_file("sentencepiece_ids.json");
  Json spec = golden_file("sentencepiece.json");
  const Json space = {{"type", "Metaspace"},
                      {"replacement", "\u2581"},
                      {"prepend_scheme", "first"},
                      {"split", false}};
  spec["normalizer"] = nullptr;
  spec["pre_tokenizer"] = space;
  spec["decoder"] = {{"type", "Sequence"}, {"decoders", {{{"type", "ByteFallback"}}, space}}};
  const test::TempFolder folder;
  std::ofstream(folder / "tokenizer.json") << spec;
  const auto tokenizer = load_tokenizer(folder.string());
  for (std::size_t i = 0; i < all["strings"].size(); ++i) {
    const std::string text = all["strings"][i];
    // A text that begins with a space has the mark already, and gets no other.
    if (!text.starts_with(' ')) {
      EXPECT_EQ(ids_of(*tokenizer, text), all["ids"][i].get<TokenIds>());
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
    }
  }
}

std::vector<std::string> cut(PieceEnd end_of, const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = end_of(text, begin);
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

TEST(KnownSplits, AreTheGoldenOnes) {
  const Json all = golden_file("splits.json");
  int patterns = 0;
  for (const auto& [name, split] : all["splits"].items()) {
    if (!split.contains("regex")) continue;
    const PieceEnd end_of = known_split(split["regex"].get<std::string>());
    ASSERT_NE(end_of, nullptr) << name;
    ++patterns;
    for (std::size_t i = 0; i < all["strings"].size(); ++i) {
      EXPECT_EQ(cut(end_of, all["strings"][i]), split["pieces"][i].get<std::vector<std::string>>())
          << name;
    }
  }
  EXPECT_EQ(patterns, 4);
  EXPECT_EQ(known_split("\\w+"), nullptr);
}

// Against PCRE2, on texts of the characters that matter.
TEST(KnownSplits, AreWhatTheirPatternsSay) {
  if (!has_regex()) GTEST_SKIP() << "this build has no PCRE2";
  const std::vector<std::string> parts{
      " ",      " ",      "\n",     "\r",     "\t",     "a",      "L",      "l", "s",
      "S",      "\'",     "\'",     "ve",     "RE",     "1",      "2",      "!", ".",
      "\u0301", "\u00e9", "\u2167", "\u00a0", "\u3000", "\u017f", "\u180e", "d"};
  const Json splits = golden_file("splits.json")["splits"];
  std::mt19937 random(5);
  for (const auto& [name, split] : splits.items()) {
    if (!split.contains("regex")) continue;
    const std::string pattern = split["regex"];
    const Regex regex(pattern, "test");
    for (int trial = 0; trial < 2000; ++trial) {
      std::string text;
      for (std::size_t i = random() % 12; i > 0; --i) text += parts[random() % parts.size()];
      std::vector<std::string> wanted;
      regex.find(text, [&](std::size_t begin, std::size_t end) {
        wanted.push_back(text.substr(begin, end - begin));
      });
      EXPECT_EQ(cut(known_split(pattern), text), wanted) << name << ": \"" << text << "\"";
    }
  }
}

}  // namespace
}  // namespace zl
