// The windows of a text that judge a model.
#include "core/data/text_windows.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace zl::test {
namespace {

std::shared_ptr<const TokenStore> counting(std::int64_t tokens) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < tokens; ++i) ids.push_back(static_cast<std::int32_t>(i));
  return keep_tokens(ids, tokens);
}

// How many tokens each counted target has before it in its window, by target; token i has id i.
std::map<std::int32_t, std::int64_t> contexts(const TextWindows& windows, std::int64_t length) {
  std::map<std::int32_t, std::int64_t> seen;
  for (std::int64_t i = 0; i < windows.samples(); ++i) {
    const Batch batch =
        windows.batch({.micro = i, .ranks = 1, .micro_batch = 1, .sequence_length = length});
    for (std::int64_t at = 0; at < length; ++at) {
      if (batch.targets[at] < 0) continue;
      EXPECT_EQ(batch.targets[at], batch.tokens[at] + 1);
      EXPECT_TRUE(seen.emplace(batch.targets[at], at + 1).second) << "counted twice";
    }
  }
  return seen;
}

TEST(TextWindows, CountEveryTokenButTheFirstOnce) {
  for (const std::int64_t tokens : {2, 8, 9, 10, 16, 17, 18, 99}) {
    for (const std::int64_t stride : {0, 1, 3, 8}) {
      const TextWindows windows(counting(tokens), {.length = 8, .stride = stride});
      const auto seen = contexts(windows, 8);
      ASSERT_EQ(static_cast<std::int64_t>(seen.size()), tokens - 1) << tokens << " " << stride;
      EXPECT_EQ(seen.begin()->first, 1);
      EXPECT_EQ(seen.rbegin()->first, tokens - 1);
    }
  }
}

// Behind the first window a target has at least length - stride + 1 tokens to look back at.
TEST(TextWindows, SmallerStridesLookBackFurther) {
  const auto least = [](std::int64_t stride) {
    const TextWindows windows(counting(99), {.length = 8, .stride = stride});
    std::int64_t fewest = 8;
    for (const auto& [target, context] : contexts(windows, 8)) {
      if (target > 8) fewest = std::min(fewest, context);
    }
    return fewest;
  };
  EXPECT_EQ(least(0), 1);
  EXPECT_EQ(least(6), 3);
  EXPECT_EQ(least(1), 8);
}

TEST(TextWindows, FewAreSpreadOverTheText) {
  const TextWindows windows(counting(100), {.length = 9, .most = 4});
  EXPECT_EQ(windows.samples(), 4);
  std::set<std::int32_t> begins;
  for (std::int64_t i = 0; i < 4; ++i) {
    begins.insert(
        windows.batch({.micro = i, .ranks = 1, .micro_batch = 1, .sequence_length = 9}).tokens[0]);
  }
  EXPECT_EQ(begins, (std::set<std::int32_t>{0, 18, 45, 72}));
}

TEST(TextWindows, RowsBeyondTheLastDoNotCount) {
  const TextWindows windows(counting(20), {.length = 8});  // 3 windows: 8, 8 and 3 targets
  const Batch last =
      windows.batch({.micro = 0, .rank = 1, .ranks = 2, .micro_batch = 2, .sequence_length = 8});
  EXPECT_EQ(last.targets, (std::vector<std::int32_t>{17, 18, 19, -1, -1, -1, -1, -1,  //
                                                     -1, -1, -1, -1, -1, -1, -1, -1}));
}

}  // namespace
}  // namespace zl::test
