// tokenizer.json: added tokens, what is put around texts, streams of tokens, long texts, and what
// is said of files that are damaged or ask for what is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/text/regex.h"
#include "core/data/text/unicode_text.h"
#include "core/data/text_stream.h"
#include "core/data/tokenizer.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

using Json = nlohmann::json;
using Row = std::vector<std::int32_t>;

const std::string kTokenizers = ZL_SOURCE_DIR "/tests/golden/models/tokenizers/";

Json spec_of(const std::string& name) {
  std::ifstream in(kTokenizers + name);
  return Json::parse(in);
}

class TokenizerFile : public testing::Test {
 protected:
  std::unique_ptr<Tokenizer> load(const Json& spec) const {
    put("tokenizer.json", spec.dump());
    return load_tokenizer(folder_.string());
  }

  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary | std::ios::trunc) << text;
  }

  void expect_refused(const Json& spec, const std::string& defect) const {
    try {
      load(spec);
      FAIL() << "accepted: " << defect;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with((folder_ / "tokenizer.json").string() + ": " + defect))
          << message;
    }
  }

  test::TempFolder folder_;
};

Json added_spec(int id, const std::string& text) {
  return {{"id", id}, {"content", text}, {"special", false}, {"normalized", false}};
}

TEST_F(TokenizerFile, ContentOfOthersHasNoSpecialTokens) {
  const auto tokenizer = load_tokenizer(kTokenizers + "smollm2.json");
  const std::string open = "<|im_start|>", text = open + "hi" + open;
  const Row all = tokenizer->encode_input({.text = text}).ids;
  EXPECT_EQ(all.front(), 1);
  EXPECT_EQ(all.back(), 1);
  const Row none = tokenizer->encode(text);
  EXPECT_EQ(std::count(none.begin(), none.end(), 1), 0);
  EXPECT_EQ(tokenizer->decode(none), text);
  TextInput input{.text = text};
  input.content = {{open.size(), text.size()}};
  const Row guarded = tokenizer->encode_input(input).ids;
  EXPECT_EQ(guarded.front(), 1);
  EXPECT_EQ(std::count(guarded.begin(), guarded.end(), 1), 1);
  EXPECT_EQ(tokenizer->decode(guarded), text);
  EXPECT_EQ(tokenizer->decode_readable(guarded), "hi" + open);
}

TEST_F(TokenizerFile, AddedTokensTakeTheSpacesThatTheyAskFor) {
  Json spec = spec_of("gpt2.json");
  spec["added_tokens"] = {added_spec(50257, "<a>"), added_spec(50258, "<a><b>"),
                          added_spec(50259, "<l>"), added_spec(50260, "<r>")};
  spec["added_tokens"][2]["lstrip"] = true;
  spec["added_tokens"][3]["rstrip"] = true;
  const auto tokenizer = load(spec);
  EXPECT_EQ(tokenizer->vocab(), 50261);
  EXPECT_EQ(tokenizer->encode("<a><b><a>"), (Row{50258, 50257}));
  const std::int32_t b = tokenizer->encode("b").at(0);
  EXPECT_EQ(tokenizer->encode("b  <l>b"), (Row{b, 50259, b}));
  EXPECT_EQ(tokenizer->encode("b<r> \nb"), (Row{b, 50260, b}));
  EXPECT_EQ(tokenizer->encode_input({.text = "<a>", .added = AddedTokens::none}).ids.size(), 3u);
}

TEST_F(TokenizerFile, AddedTokensOfSingleWords) {
  if (!has_unicode_text()) GTEST_SKIP() << "this build has no utf8proc";
  Json spec = spec_of("gpt2.json");
  spec["added_tokens"] = {added_spec(50257, "world")};
  spec["added_tokens"][0]["single_word"] = true;
  const auto tokenizer = load(spec);
  const auto count = [&](const std::string& text) {
    const Row ids = tokenizer->encode(text);
    return std::count(ids.begin(), ids.end(), 50257);
  };
  EXPECT_EQ(count("a world, world"), 2);
  EXPECT_EQ(count("worlds aworld _world world\u0301"), 0);
}

// Llama 3: whole pieces first, its own pattern, and a token in front of every text.
TEST_F(TokenizerFile, WholePiecesAndABeginning) {
  Json spec = spec_of("gpt2.json");
  spec["model"]["ignore_merges"] = true;
  spec["model"]["vocab"]["wordword"] = 50300;  // no merge makes it
  const Json special = {{"id", "<|b|>"}, {"ids", {50301}}, {"tokens", {"<|b|>"}}};
  spec["added_tokens"] = {added_spec(50301, "<|b|>")};
  spec["added_tokens"][0]["special"] = true;
  spec["post_processor"] = {{"type", "Sequence"},
                            {"processors",
                             {{{"type", "ByteLevel"}},
                              {{"type", "TemplateProcessing"},
                               {"single",
                                {{{"SpecialToken", {{"id", "<|b|>"}, {"type_id", 0}}}},
                                 {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
                               {"pair", Json::array()},
                               {"special_tokens", {{"<|b|>", special}}}}}}};
  put("tokenizer_config.json", R"({"bos_token": {"content": "<|b|>"}, "pad_token": null})");
  const auto tokenizer = load(spec);
  EXPECT_EQ(tokenizer->encode("wordword"), (Row{50300}));
  EXPECT_GT(tokenizer->encode(" wordword").size(), 1u);
  EXPECT_EQ(tokenizer->encode_input({.text = "wordword"}).ids, (Row{50301, 50300}));
  EXPECT_EQ(tokenizer->encode_input({.text = "wordword", .special_tokens = false}).ids,
            (Row{50300}));
  EXPECT_EQ(tokenizer->special_ids().bos, 50301);
  EXPECT_FALSE(tokenizer->special_ids().pad);
  EXPECT_EQ(tokenizer->decode_readable(Row{50301, 50300}), "wordword");
}

TEST_F(TokenizerFile, NormalFormsAsQwenHasThem) {
  if (!has_unicode_text()) GTEST_SKIP() << "this build has no utf8proc";
  Json spec = spec_of("gpt2.json");
  spec["normalizer"] = {{"type", "NFC"}};
  const auto tokenizer = load(spec);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("e\u0301\xff")), "\u00e9\xff");
  spec["normalizer"]["type"] = "NFD";
  EXPECT_EQ(load(spec)->decode(load(spec)->encode("\u00e9")), "e\u0301");
  spec["normalizer"]["type"] = "NFKC";
  EXPECT_EQ(load(spec)->decode(load(spec)->encode("\ufb01")), "fi");
  EXPECT_EQ(to_form("a\u0301\u0316", UnicodeForm::nfd), "a\u0316\u0301");
  EXPECT_EQ(to_form("a\u0316\u0301", UnicodeForm::nfc), "\u00e1\u0316");
  // Marks in an order that each swap of neighbours would mend one place at a time.
  std::string marks = "a";
  for (int i = 0; i < 200'000; ++i) marks += i % 2 == 0 ? "\u0301" : "\u0316";
  EXPECT_EQ(to_form(marks, UnicodeForm::nfd).size(), marks.size());
}

TEST_F(TokenizerFile, EveryByteComesBack) {
  const auto bytes = load_tokenizer(kTokenizers + "gpt2.json");
  const auto pieces = load_tokenizer(kTokenizers + "sentencepiece.json");
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::string text(random() % 300, '\0');
    for (char& c : text) c = trial % 2 ? "In the<>\n"[random() % 9] : static_cast<char>(random());
    EXPECT_EQ(bytes->decode(bytes->encode(text)), text);
    EXPECT_EQ(pieces->decode(pieces->encode(text)), text);
  }
}

// The merges of a long line cost O(n log n); a quadratic loop would take hours.
TEST_F(TokenizerFile, ALineOfAMegabyte) {
  Json spec = spec_of("gpt2.json");
  spec["model"]["vocab"]["aa"] = 50300;
  spec["model"]["vocab"]["aaaa"] = 50301;
  spec["model"]["merges"].push_back({"a", "a"});
  spec["model"]["merges"].push_back({"aa", "aa"});
  const auto tokenizer = load(spec);
  const Row ids = tokenizer->encode(std::string(1 << 20, 'a'));
  EXPECT_EQ(ids, Row(1 << 18, 50301));
  const auto pieces = load_tokenizer(kTokenizers + "sentencepiece.json");
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(pieces->decode(pieces->encode(spaces)), spaces);
}

TEST_F(TokenizerFile, AStreamHoldsBackWhatIsNoCharacterYet) {
  const auto tokenizer = load_tokenizer(kTokenizers + "smollm2.json");
  const std::string text = "hi \u65e5\U0001F600!";
  TextStream stream(*tokenizer);
  std::string out = stream.push(1);
  bool held = false;
  for (const std::int32_t id : tokenizer->encode(text)) {
    const std::string part = stream.push(id);
    held = held || part.empty();
    out += part;
  }
  EXPECT_TRUE(held);
  EXPECT_EQ(out + stream.finish(), text);
  const auto bytes = load_tokenizer("");
  TextStream broken(*bytes);
  EXPECT_EQ(broken.push(0xe6), "");
  EXPECT_EQ(broken.push('a'), "\ufffda");
  EXPECT_EQ(broken.push(0xe6), "");
  EXPECT_EQ(broken.finish(), "\ufffd");
}

TEST_F(TokenizerFile, AStreamOfPiecesKeepsTheirSpaces) {
  const auto tokenizer = load_tokenizer(kTokenizers + "sentencepiece.json");
  const std::string text = "In the beginning  God \u65e5 x";
  TextStream stream(*tokenizer);
  std::string out;
  for (const std::int32_t id : tokenizer->encode(text)) out += stream.push(id);
  EXPECT_EQ(out + stream.finish(), text);
}

TEST_F(TokenizerFile, AListOfWords) {
  if (!has_unicode_text()) GTEST_SKIP() << "this build has no utf8proc";
  put("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwept\nje\n##sus\n.\n");
  const auto lower = load_tokenizer(folder_.string());
  EXPECT_EQ(lower->encode_input({.text = "J\u00e9sus wept. [MASK]"}).ids,
            (Row{2, 6, 7, 5, 8, 4, 3}));
  EXPECT_EQ(lower->special_ids().mask, 4);
  EXPECT_EQ(lower->decode_readable(Row{2, 6, 7, 5, 8, 3}), "jesus wept.");
  put("tokenizer_config.json", R"({"do_lower_case": false, "pad_token": "[PAD]"})");
  const auto cased = load_tokenizer(folder_.string());
  EXPECT_EQ(cased->encode("Jesus wept"), (Row{1, 5}));
  EXPECT_EQ(cased->special_ids().pad, 0);
  put("vocab.txt", "[UNK]\n[CLS]\n[SEP]\na\na\n");
  EXPECT_THROW(load_tokenizer((folder_ / "vocab.txt").string()), Error);
}

TEST_F(TokenizerFile, PatternsOfItsOwn) {
  Json spec = spec_of("gpt2.json");
  spec["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "\\s"}}}, {"behavior", "Removed"}},
        {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}};
  if (!has_regex()) {
    expect_refused(spec, "pre_tokenizer.pretokenizers[0].pattern.Regex: \"\\s\" is none of");
    return;
  }
  // U+180E is no space, U+0085 is one.
  const auto tokenizer = load(spec);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("a b\u0085c\u180ed")), "abc\u180ed");
  spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(";
  expect_refused(spec, "pre_tokenizer.pretokenizers[0].pattern.Regex: \"(\" is no regular");
  spec["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "(a|aa|a)+$";
  const auto slow = load(spec);
  EXPECT_THROW(slow->encode(std::string(200, 'a') + "b"), Error);
}

TEST_F(TokenizerFile, NamesEveryDefect) {
  const Json good = spec_of("gpt2.json");
  const auto with = [&](const char* pointer, const Json& value) {
    Json spec = good;
    spec[Json::json_pointer(pointer)] = value;
    return spec;
  };
  expect_refused("x", "not a JSON object");
  expect_refused(with("/normalizer", {{"type", "Nmt"}}), "normalizer.type: \"Nmt\" is not known");
  expect_refused(with("/pre_tokenizer/type", "Punctuation"), "pre_tokenizer.type: \"Punctuation\"");
  expect_refused(with("/pre_tokenizer/use_regex", 1), "pre_tokenizer.use_regex: neither true");
  expect_refused(with("/decoder/type", "CTC"), "decoder.type: \"CTC\" is not known");
  expect_refused(with("/post_processor/type", "X"), "post_processor.type: \"X\" is not known");
  expect_refused(with("/model/type", "Unigram"), "model.type: \"Unigram\" is not known");
  expect_refused(with("/model/dropout", 0.1), "model.dropout: merges dropped at random");
  expect_refused(with("/model/vocab/zz", 5), "model.vocab.zz: id 5 is also that of");
  expect_refused(with("/model/vocab/zz", -1), "model.vocab.zz: -1 is not an integer");
  expect_refused(with("/model/vocab/zz", 1e18), "model.vocab.zz: 1e+18 is not an integer");
  expect_refused(with("/model/merges/0", "a"), "model.merges[0]: \"a\" is not two tokens");
  expect_refused(with("/model/merges/0", {"a", "zz"}), "model.merges[0]: \"zz\" is not in");
  expect_refused(with("/model/unk_token", "zz"), "model.unk_token: \"zz\" is not in the vocab");
  expect_refused(with("/added_tokens/0/id", 1 << 30), "added_tokens[0].id: 1073741824 is not");
  expect_refused(with("/added_tokens/0/content", nullptr), "added_tokens[0].content: not a text");
  put("tokenizer.json", "{");
  EXPECT_THROW(load_tokenizer(folder_.string()), Error);
  EXPECT_THROW(load_tokenizer((folder_ / "missing").string()), Error);
  const auto tokenizer = load(good);
  EXPECT_THROW(tokenizer->decode(Row{50257}), Error);
}

}  // namespace
}  // namespace zl
