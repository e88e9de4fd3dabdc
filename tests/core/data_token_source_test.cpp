// Token sources: samples are windows of the text, the same for every split of a batch; bad files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/token_source.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

// All samples of one step, in sample order, drawn as `world` ranks with `micros` micro-batches do.
Batch global_batch(const TokenSource& source, std::int64_t step, int world, std::int64_t micros,
                   std::int64_t micro_batch, std::int64_t length) {
  Batch all;
  for (std::int64_t micro = 0; micro < micros; ++micro) {
    for (int rank = 0; rank < world; ++rank) {
      const Batch part = source.batch({.step = step,
                                       .micro = micro,
                                       .rank = rank,
                                       .ranks = world,
                                       .micro_batch = micro_batch,
                                       .sequence_length = length});
      all.tokens.insert(all.tokens.end(), part.tokens.begin(), part.tokens.end());
      all.targets.insert(all.targets.end(), part.targets.begin(), part.targets.end());
    }
  }
  return all;
}

class TokenSourceFile : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    const fs::path path = folder_ / name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return path.string();
  }

  static std::string raw(const std::vector<std::uint16_t>& tokens) {
    return {reinterpret_cast<const char*>(tokens.data()), tokens.size() * 2};
  }

  static std::string header(std::int32_t magic, std::int32_t version, std::int32_t count) {
    std::vector<std::int32_t> words(256, 0);
    words[0] = magic;
    words[1] = version;
    words[2] = count;
    return {reinterpret_cast<const char*>(words.data()), 1024};
  }

  TokenSource open(const std::string& path, std::int64_t vocab = 256) const {
    return TokenSource::open(path, tokenizer_, vocab, 1);
  }

  void expect_invalid(const std::string& path, const std::string& defect,
                      std::int64_t vocab = 256) const {
    try {
      open(path, vocab);
      FAIL() << "accepted: " << defect;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      const std::string message = error.what();
      EXPECT_NE(message.find(path), std::string::npos) << message;
      EXPECT_NE(message.find(defect), std::string::npos) << message;
    }
  }

  test::TempFolder folder_;
  ByteTokenizer tokenizer_;
};

// Token i of this source is i, so a sample shows where its window starts.
std::vector<std::uint16_t> counting(std::size_t count) {
  std::vector<std::uint16_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{0});
  return tokens;
}

TEST_F(TokenSourceFile, SamplesAreWindowsWithShiftedTargets) {
  const TokenSource source = open(put("x.bin", raw(counting(1000))), 1000);
  EXPECT_EQ(source.tokens(), 1000);
  const Batch batch = global_batch(source, 3, 2, 2, 4, 16);
  for (std::size_t sample = 0; sample < 16; ++sample) {
    const std::int32_t start = batch.tokens[sample * 16];
    for (std::int32_t i = 0; i < 16; ++i) {
      EXPECT_EQ(batch.tokens[sample * 16 + static_cast<std::size_t>(i)], start + i);
      EXPECT_EQ(batch.targets[sample * 16 + static_cast<std::size_t>(i)], start + i + 1);
    }
  }
}

TEST_F(TokenSourceFile, TheGlobalBatchIsTheSameForEverySplit) {
  const TokenSource text = open(put("x.bin", raw(counting(5000))), 5000);
  for (const TokenSource& source : {text, TokenSource::synthetic(777, 5)}) {
    const Batch one = global_batch(source, 7, 1, 1, 24, 9);
    for (const auto& [world, micros, micro_batch] :
         {std::array<int, 3>{24, 1, 1}, {4, 2, 3}, {1, 24, 1}, {3, 4, 2}, {2, 1, 12}}) {
      EXPECT_EQ(global_batch(source, 7, world, micros, micro_batch, 9), one)
          << world << " ranks, " << micros << " micro-batches of " << micro_batch;
    }
  }
}

TEST_F(TokenSourceFile, StepsAndSeedsDrawOtherSamples) {
  const std::string path = put("x.bin", raw(counting(60000)));
  const TokenSource source = open(path, 60000);
  std::set<std::int32_t> starts;
  for (std::int64_t step = 0; step < 50; ++step) {
    const Batch batch = global_batch(source, step, 2, 1, 2, 1);
    starts.insert(batch.tokens.begin(), batch.tokens.end());
  }
  EXPECT_GT(starts.size(), 190u);  // 200 draws out of 59,999: a few may meet
  const TokenSource other = TokenSource::open(path, tokenizer_, 60000, 2);
  EXPECT_FALSE(global_batch(other, 0, 1, 1, 8, 4) == global_batch(source, 0, 1, 1, 8, 4));
  EXPECT_TRUE(global_batch(open(path, 60000), 9, 1, 1, 8, 4) ==
              global_batch(source, 9, 1, 1, 8, 4));
}

TEST_F(TokenSourceFile, EveryWindowIsReachedAboutEquallyOften) {
  const TokenSource source = open(put("x.bin", raw(counting(12))), 12);
  std::vector<int> count(12, 0);
  const Batch batch = global_batch(source, 0, 1, 1, 8000, 4);
  for (std::size_t sample = 0; sample < 8000; ++sample) {
    ++count[static_cast<std::size_t>(batch.tokens[sample * 4])];
  }
  // Starts 0..7, 1000 expected of each; 5 standard deviations are 148.
  for (std::size_t start = 0; start < 12; ++start) {
    EXPECT_NEAR(count[start], start < 8 ? 1000 : 0, start < 8 ? 148 : 0) << "start " << start;
  }
}

TEST_F(TokenSourceFile, ExactlyOneWindow) {
  const TokenSource source = open(put("x.txt", "abcd"));
  const Batch batch = global_batch(source, 5, 1, 1, 1, 3);
  EXPECT_EQ(batch.tokens, (std::vector<std::int32_t>{'a', 'b', 'c'}));
  EXPECT_EQ(batch.targets, (std::vector<std::int32_t>{'b', 'c', 'd'}));
  try {
    source.require(4);
    FAIL() << "took a window longer than the text";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    const std::string message = error.what();
    EXPECT_NE(message.find("x.txt: holds 4 tokens, sequence_length 4 needs at least 5"),
              std::string::npos)
        << message;
  }
  EXPECT_THROW(source.batch({.sequence_length = 4}), Error);
}

TEST_F(TokenSourceFile, LlmcHeaderIsSkipped) {
  const auto tokens = counting(100);
  const TokenSource with = open(put("h.bin", header(20240520, 1, 100) + raw(tokens)), 100);
  const TokenSource without = open(put("r.bin", raw(tokens)), 100);
  EXPECT_EQ(with.tokens(), 100);
  EXPECT_EQ(global_batch(with, 1, 1, 1, 8, 5), global_batch(without, 1, 1, 1, 8, 5));
}

// A tokenizer whose ids need more than 16 bits.
class WideTokenizer final : public Tokenizer {
 public:
  std::int64_t vocab() const override { return 100'000; }
  std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> tokens;
    for (const char c : text) tokens.push_back(70'000 + c);
    return tokens;
  }
  std::string decode(std::span<const std::int32_t>) const override { return {}; }
};

TEST_F(TokenSourceFile, WideVocabularies) {
  const std::string path = put("x.txt", "abc");
  const TokenSource source = TokenSource::open(path, WideTokenizer(), 100'000, 1);
  EXPECT_EQ(global_batch(source, 0, 1, 1, 1, 2).targets,
            (std::vector<std::int32_t>{70'000 + 'b', 70'000 + 'c'}));
  EXPECT_THROW(TokenSource::open(path, WideTokenizer(), 70'000, 1), Error);
}

TEST_F(TokenSourceFile, CopiesShareTheTokens) {
  TokenSource copy = TokenSource::synthetic(2, 0);
  {
    const TokenSource source = open(put("x.txt", "hello"));
    copy = source;
  }
  EXPECT_EQ(global_batch(copy, 0, 1, 1, 1, 4).tokens,
            (std::vector<std::int32_t>{'h', 'e', 'l', 'l'}));
}

TEST_F(TokenSourceFile, NamesEveryDefect) {
  for (const std::string name : {"absent.txt", "absent.bin"}) {
    expect_invalid((folder_ / name).string(), "cannot open it");
  }
  expect_invalid(put("empty.txt", ""), "is empty");
  expect_invalid(put("empty.bin", ""), "is empty");
  fs::create_directories(folder_ / "folder.bin");
  expect_invalid((folder_ / "folder.bin").string(), "not a regular file");
  expect_invalid(folder_.string(), "is a folder");
  expect_invalid(put("odd.bin", "abc"), "truncated: 3 bytes are no whole number");
  expect_invalid(put("short.bin", header(20240520, 1, 3) + raw({1, 2})),
                 "truncated: the header promises 3 tokens, the file has 2");
  expect_invalid(put("long.bin", header(20240520, 1, 1) + raw({1, 2})),
                 "the header promises 1 tokens, the file has 2");
  expect_invalid(put("cut.bin", header(20240520, 1, 3).substr(0, 100)), "truncated: 100 bytes");
  expect_invalid(put("none.bin", header(20240520, 1, 0)), "holds no tokens");
  expect_invalid(put("version.bin", header(20240520, 2, 0)), "header version 2 is not 1");
  expect_invalid(put("llama3.bin", header(20240801, 7, 0)), "uint32 tokens");
  expect_invalid(put("ids.bin", raw({1, 2, 300, 4, 301})),
                 "token 2 has id 300, beyond the model's vocabulary of 300", 300);
  expect_invalid(put("ids.txt", "abz"), "token 2 has id 122", 122);
  EXPECT_EQ(open(put("fits.txt", "abz"), 123).tokens(), 3);
  EXPECT_THROW(TokenSource::synthetic(0, 1), Error);
}

TEST_F(TokenSourceFile, OnlyRegularFilesAreReadAndNothingIsWaitedFor) {
  for (const std::string name : {"fifo.txt", "fifo.bin"}) {
    const std::string fifo = (folder_ / name).string();
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    expect_invalid(fifo, "is a FIFO, not a regular file");
  }
  expect_invalid("/dev/zero", "is a device, not a regular file");
}

TEST_F(TokenSourceFile, AFileThatShrinksIsAnError) {
  const std::string path = put("x.bin", raw(counting(60000)));
  const TokenSource source = open(path, 60000);
  fs::resize_file(path, 100);
  try {
    global_batch(source, 0, 1, 1, 16, 16);
    FAIL() << "read what is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_NE(std::string(error.what()).find(path + ": ends after "), std::string::npos)
        << error.what();
  }
}

// Of the tokens, not of the file that they are in.
TEST_F(TokenSourceFile, TheFingerprintIsOfTheContent) {
  const std::string print = open(put("a.txt", "abc")).fingerprint();
  EXPECT_EQ(print, "3 tokens, crc32c d73c27b7");  // of 61 0 0 0 62 0 0 0 63 0 0 0
  EXPECT_EQ(open(put("b.bin", raw({'a', 'b', 'c'}))).fingerprint(), print);
  EXPECT_EQ(open(put("h.bin", header(20240520, 1, 3) + raw({'a', 'b', 'c'}))).fingerprint(), print);
  EXPECT_NE(open(put("a.txt", "abd")).fingerprint(), print);
  EXPECT_EQ(TokenSource::synthetic(7, 1).fingerprint(), "synthetic");
  // Beyond the tokens that are looked at at once.
  std::string text(200'000, 'a');
  const std::string before = open(put("long.txt", text)).fingerprint();
  text[199'999] = 'b';
  EXPECT_NE(open(put("long.txt", text)).fingerprint(), before);
}

TEST(SyntheticTokens, AreUniformAndShifted) {
  const TokenSource source = TokenSource::synthetic(10, 3);
  EXPECT_EQ(source.tokens(), 0);
  const Batch batch = global_batch(source, 0, 1, 1, 100, 101);
  std::vector<int> count(10, 0);
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    ASSERT_GE(batch.tokens[i], 0);
    ASSERT_LT(batch.tokens[i], 10);
    ++count[static_cast<std::size_t>(batch.tokens[i])];
    if (i % 101 != 100) {
      EXPECT_EQ(batch.targets[i], batch.tokens[i + 1]);
    }
  }
  // 1010 expected of each; 5 standard deviations are 151.
  for (const int tokens : count) EXPECT_NEAR(tokens, 1010, 151);
  EXPECT_FALSE(global_batch(source, 1, 1, 1, 2, 8) == global_batch(source, 0, 1, 1, 2, 8));
  EXPECT_FALSE(global_batch(TokenSource::synthetic(10, 4), 0, 1, 1, 2, 8) ==
               global_batch(source, 0, 1, 1, 2, 8));
}

}  // namespace
}  // namespace zl
