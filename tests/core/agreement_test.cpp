// What ranks that do not state the same are told. That they are told it: tests/mpi.
#include "core/rank/agreement.h"

#include <gtest/gtest.h>

namespace zl {
namespace {

using Facts = std::vector<Fact>;

TEST(Agreement, EqualFactsHaveNoDifference) {
  const Facts facts{{"seed", "1"}, {"data", "a"}};
  EXPECT_EQ(describe_differences({facts, facts, facts}), "");
}

TEST(Agreement, ADifferenceNamesKeyRanksAndValues) {
  EXPECT_EQ(describe_differences({{{"seed", "1"}}, {{"seed", "2"}}, {{"seed", "1"}}}),
            "seed: rank 0, 2 has 1, rank 1 has 2");
}

TEST(Agreement, AKeyThatARankDoesNotHaveIsNone) {
  EXPECT_EQ(describe_differences({{{"a", "1"}}, {{"a", "1"}, {"b", "2"}}}),
            "b: rank 0 has none, rank 1 has 2");
}

TEST(Agreement, ThreeKeysAreNamedAndLongValuesCut) {
  Facts first, second;
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    first.push_back({key, "1"});
    second.push_back({key, std::string(500, 'x')});
  }
  const std::string text = describe_differences({first, second});
  EXPECT_TRUE(text.starts_with("a: rank 0 has 1, rank 1 has xxx")) << text;
  EXPECT_TRUE(text.ends_with("x... (500 characters); and 2 more")) << text;
  EXPECT_LT(text.size(), 800U);
}

}  // namespace
}  // namespace zl
