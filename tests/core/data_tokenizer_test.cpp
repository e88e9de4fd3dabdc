// Tokenizers: the pre-tokenisation rules, merges derived by hand, round trips, bad folders.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/gpt2_split.h"
#include "core/data/tokenizer.h"
#include "core/data/unicode_class.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;
using Pieces = std::vector<std::string>;

Pieces split(std::string_view text) {
  Pieces pieces;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = gpt2_piece_end(text, begin);
    pieces.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

TEST(Gpt2Split, WordsTakeTheSpaceBeforeThem) {
  EXPECT_EQ(split("Hello world"), (Pieces{"Hello", " world"}));
  EXPECT_EQ(split("a1 22b"), (Pieces{"a", "1", " 22", "b"}));
  EXPECT_EQ(split("wait... what?!"), (Pieces{"wait", "...", " what", "?!"}));
  EXPECT_EQ(split(" #1"), (Pieces{" #", "1"}));
}

TEST(Gpt2Split, Contractions) {
  EXPECT_EQ(split("it's we're I'll"), (Pieces{"it", "'s", " we", "'re", " I", "'ll"}));
  EXPECT_EQ(split("can't've'm'd"), (Pieces{"can", "'t", "'ve", "'m", "'d"}));
  // Lower case only, no longest match, and an apostrophe inside punctuation is punctuation.
  EXPECT_EQ(split("IT'S"), (Pieces{"IT", "'", "S"}));
  EXPECT_EQ(split("'sun"), (Pieces{"'s", "un"}));
  EXPECT_EQ(split("'r"), (Pieces{"'", "r"}));
  EXPECT_EQ(split("!'s"), (Pieces{"!'", "s"}));
  EXPECT_EQ(split(" 's"), (Pieces{" '", "s"}));
}

TEST(Gpt2Split, ARunOfSpacesLeavesItsLastToTheWord) {
  EXPECT_EQ(split("a   b"), (Pieces{"a", "  ", " b"}));
  EXPECT_EQ(split("a  "), (Pieces{"a", "  "}));
  EXPECT_EQ(split("a\n\nb"), (Pieces{"a", "\n", "\n", "b"}));
  EXPECT_EQ(split("a\n  b"), (Pieces{"a", "\n ", " b"}));
  EXPECT_EQ(split("a\tb"), (Pieces{"a", "\t", "b"}));
  EXPECT_EQ(split("\n"), (Pieces{"\n"}));
  // U+00A0 and U+3000 are spaces, but only U+0020 joins a word.
  EXPECT_EQ(split("a\u00a0b"), (Pieces{"a", "\u00a0", "b"}));
  EXPECT_EQ(split("a\u3000 b"), (Pieces{"a", "\u3000", " b"}));
}

TEST(Gpt2Split, UnicodeLettersAndNumbers) {
  EXPECT_EQ(split("na\u00efve \u0416\u0443\u043a \u6f22\u5b57\u3002"),
            (Pieces{"na\u00efve", " \u0416\u0443\u043a", " \u6f22\u5b57", "\u3002"}));
  EXPECT_EQ(split("x\u00b2\u0664"), (Pieces{"x", "\u00b2\u0664"}));
  EXPECT_EQ(split("hi \U0001F600!"), (Pieces{"hi", " \U0001F600!"}));
  // A combining accent is a mark: not a letter.
  EXPECT_EQ(split("e\u0301a"), (Pieces{"e", "\u0301", "a"}));
}

TEST(Gpt2Split, InvalidUtf8BytesArePunctuation) {
  EXPECT_EQ(split("a\xff\xc3 b"), (Pieces{"a", "\xff\xc3", " b"}));
  EXPECT_EQ(split("a\xed\xa0\x80"), (Pieces{"a", "\xed\xa0\x80"}));  // a surrogate
  EXPECT_EQ(split("a\xc1\x81"), (Pieces{"a", "\xc1\x81"}));          // overlong 'A'
  EXPECT_EQ(split("\xe6\xbc"), (Pieces{"\xe6\xbc"}));                // cut short
}

TEST(UnicodeClass, CountsOfUnicode14) {
  // Totals of L*, N* and White_Space in the Unicode 14.0 character database.
  std::map<CharClass, int> count;
  for (char32_t c = 0; c < 0x110000; ++c) ++count[classify(c)];
  EXPECT_EQ(count[CharClass::letter], 131756);
  EXPECT_EQ(count[CharClass::number], 1791);
  EXPECT_EQ(count[CharClass::space], 25);
  EXPECT_EQ(classify(U'z'), CharClass::letter);
  EXPECT_EQ(classify(U'{'), CharClass::other);
  EXPECT_EQ(classify(U'0'), CharClass::number);
  EXPECT_EQ(classify(U'/'), CharClass::other);
  EXPECT_EQ(classify(U'\u2167'), CharClass::number);  // Roman numeral eight, category Nl
  EXPECT_EQ(classify(0x110000), CharClass::other);
}

TEST(ByteTokenizer, RoundTripOfEveryByte) {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  const ByteTokenizer tokenizer;
  const auto tokens = tokenizer.encode(text);
  for (int byte = 0; byte < 256; ++byte) EXPECT_EQ(tokens[static_cast<std::size_t>(byte)], byte);
  EXPECT_EQ(tokenizer.decode(tokens), text);
  EXPECT_THROW(tokenizer.decode(std::vector<std::int32_t>{256}), Error);
  EXPECT_THROW(tokenizer.decode(std::vector<std::int32_t>{-1}), Error);
}

std::string utf8(std::uint32_t code_point) {
  if (code_point < 0x80) return {static_cast<char>(code_point)};
  return {static_cast<char>(0xc0 | (code_point >> 6)), static_cast<char>(0x80 | (code_point & 63))};
}

// GPT-2's spelling of a byte, derived from its rule here independently of the reader's table:
// bytes that are no printable Latin-1 character take U+0100 + (how many such bytes come before).
std::string spelled(int byte) {
  const auto hidden = [](int b) { return b <= 32 || (b >= 127 && b <= 160) || b == 173; };
  if (!hidden(byte)) return utf8(static_cast<std::uint32_t>(byte));
  std::uint32_t rank = 0;
  for (int b = 0; b < byte; ++b) rank += hidden(b);
  return utf8(0x100 + rank);
}

class Gpt2Folder : public ::testing::Test {
 protected:
  Gpt2Folder() {
    // Byte b has id b; then the merged tokens. \u0120 is the space.
    for (int byte = 0; byte < 256; ++byte) {
      std::string key = spelled(byte);
      if (key == "\"" || key == "\\") key = "\\" + key;
      vocab_ += "\"" + key + "\":" + std::to_string(byte) + ",";
    }
    vocab_ = "{" + vocab_ + R"("th":256,"he":257,"the":258,"Ġt":259,"Ġthe":260,"aa":261,"##":262)";
    put("vocab.json", vocab_ + "}");
    put("merges.txt", "#version: 0.2\nh e\nĠ t\nt he\nĠt he\nt h\na a\n# #\n");
  }

  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary | std::ios::trunc) << text;
  }

  void expect_invalid(const std::string& file, const std::string& defect) const {
    try {
      Gpt2Tokenizer tokenizer(folder_.string());
      FAIL() << "accepted: " << defect;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      const std::string message = error.what();
      EXPECT_NE(message.find((folder_ / file).string()), std::string::npos) << message;
      EXPECT_NE(message.find(defect), std::string::npos) << message;
    }
  }

  test::TempFolder folder_;
  std::string vocab_;
};

using Ids = std::vector<std::int32_t>;

TEST_F(Gpt2Folder, MergesByRankDerivedByHand) {
  const Gpt2Tokenizer tokenizer(folder_.string());
  EXPECT_EQ(tokenizer.vocab(), 263);
  // t h e -> "h e" has the best rank -> t he -> "t he" -> the.
  EXPECT_EQ(tokenizer.encode("the"), (Ids{258}));
  // Ġ t h e -> he; then "Ġ t" outranks "t he" -> Ġt he -> Ġthe.
  EXPECT_EQ(tokenizer.encode(" the"), (Ids{260}));
  EXPECT_EQ(tokenizer.encode("thx"), (Ids{256, 'x'}));
  // Left to right: the odd one stays last.
  EXPECT_EQ(tokenizer.encode("aaaaa"), (Ids{261, 261, 'a'}));
  // Merges never cross pieces: the second space belongs to the word.
  EXPECT_EQ(tokenizer.encode("the  the\n"), (Ids{258, ' ', 260, '\n'}));
  // "# #" is a merge, not a comment.
  EXPECT_EQ(tokenizer.encode("###"), (Ids{262, '#'}));
  EXPECT_EQ(tokenizer.decode(Ids{258, 259, 'o'}), "the to");
  EXPECT_TRUE(tokenizer.encode("").empty());
  EXPECT_THROW(tokenizer.decode(Ids{263}), Error);
}

// The textbook definition: merge every occurrence of the best-ranked pair, again and again.
Ids merge_by_brute_force(const std::string& piece, const std::vector<std::array<int, 3>>& merges) {
  Ids tokens(piece.begin(), piece.end());
  for (bool merged = true; merged;) {
    merged = false;
    for (const auto& [left, right, result] : merges) {
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i] != left || tokens[i + 1] != right) continue;
        tokens[i] = result;
        tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        merged = true;
      }
      if (merged) break;
    }
  }
  return tokens;
}

TEST_F(Gpt2Folder, AgreesWithTheTextbookMergeOnRandomWords) {
  const Gpt2Tokenizer tokenizer(folder_.string());
  const std::vector<std::array<int, 3>> merges{
      {'h', 'e', 257}, {'t', 257, 258}, {'t', 'h', 256}, {'a', 'a', 261}};
  std::mt19937 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    std::string word(random() % 40, '\0');
    for (char& c : word) c = "thea"[random() % 4];
    EXPECT_EQ(tokenizer.encode(word), merge_by_brute_force(word, merges)) << word;
  }
}

TEST_F(Gpt2Folder, RoundTripOfRandomBytesAndText) {
  const auto tokenizer = load_tokenizer(folder_.string());
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::string text(random() % 300, '\0');
    // Half of the trials keep to few symbols, so that merges happen.
    for (char& c : text) c = trial % 2 ? "the a#\n"[random() % 7] : static_cast<char>(random());
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), text);
  }
  const std::string sample =
      "In the beginning God created the heaven and the earth. \u00c5\u00df\u6f22";
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(sample)), sample);
  EXPECT_EQ(load_tokenizer("")->vocab(), 256);
}

TEST_F(Gpt2Folder, CarriageReturnsAndNoVersionLine) {
  put("merges.txt", "h e\r\nt he\r\n");
  EXPECT_EQ(Gpt2Tokenizer(folder_.string()).encode("the"), (Ids{258}));
}

TEST_F(Gpt2Folder, NamesEveryDefect) {
  put("vocab.json", vocab_);
  expect_invalid("vocab.json", "not valid JSON");
  put("vocab.json", "[1]");
  expect_invalid("vocab.json", "not a JSON object");
  put("vocab.json", R"({"a":0})");
  expect_invalid("vocab.json", "no token for byte 0");
  put("vocab.json", vocab_ + R"(,"zz":264})");
  expect_invalid("vocab.json", "token \"zz\" has id 264; ids must be 0..263");
  put("vocab.json", vocab_ + R"(,"zz":5})");
  expect_invalid("vocab.json", "each once");
  put("vocab.json", vocab_ + R"(,"a b":263})");
  expect_invalid("vocab.json", "token \"a b\" is not in GPT-2's byte spelling");
  fs::remove(folder_ / "vocab.json");
  expect_invalid("vocab.json", "cannot open it");
  put("vocab.json", vocab_ + "}");
  put("merges.txt", "#version: 0.2\nh e\nthe\n");
  expect_invalid("merges.txt", "line 3: \"the\" is not two tokens");
  put("merges.txt", "h q\n");
  expect_invalid("merges.txt", "line 1: \"h q\" uses a token that vocab.json lacks");
  fs::remove(folder_ / "merges.txt");
  expect_invalid("merges.txt", "cannot open it");
}

}  // namespace
}  // namespace zl
