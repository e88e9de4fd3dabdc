#include "results/fitted.h"

#include <gtest/gtest.h>

namespace zl::test {
namespace {

using Names = std::vector<std::string>;

// 4, 60 and 6 characters wide.
Table described() {
  return {
      {{"name", Align::left}, {.name = "what", .align = Align::left, .is_prose = true}, {"ranks"}},
      {{"one", std::string(60, 'x'), std::int64_t{123456}}, {"two", "größe", Cell{}}}};
}

// Of the rule under the header.
std::size_t width_of(const Table& table) {
  const std::string text = render(table, Format::table);
  const std::size_t rule = text.find('\n') + 1;
  return text_width(text.substr(rule, text.find('\n', rule) - rule));
}

TEST(Fitted, AnyWidthKeepsAll) {
  for (const std::size_t width : {0, 74, 200}) {
    const Fitted shown = fitted(described(), width);
    EXPECT_EQ(width_of(shown.table), 74u);
    EXPECT_TRUE(shown.left_out.empty() && shown.cut.empty());
  }
}

TEST(Fitted, ProseGetsWhatOthersLeave) {
  const Fitted shown = fitted(described(), 70);
  EXPECT_EQ(width_of(shown.table), 70u);
  EXPECT_EQ(shown.cut, Names{"what"});
  EXPECT_EQ(shown.table.rows[0][1], Cell(std::string(55, 'x') + "…"));
  EXPECT_EQ(shown.table.rows[1][1], Cell("größe"));
}

TEST(Fitted, WhatFollowsGoesBeforeProseIsIllegible) {
  const std::size_t least = 4 + 2 + kLeastProse;
  const Fitted shown = fitted(described(), least + 7);
  EXPECT_EQ(width_of(shown.table), least + 7);
  EXPECT_EQ(shown.left_out, Names{"ranks"});
  EXPECT_EQ(fitted(described(), least - 1).left_out, (Names{"what", "ranks"}));
}

TEST(Fitted, IsCutBetweenCharacters) {
  Table table = described();
  std::string umlauts;
  for (int i = 0; i < 60; ++i) umlauts += "ü";
  table.rows[0][1] = umlauts;
  const Fitted shown = fitted(table, 70);
  EXPECT_EQ(shown.table.rows[0][1], Cell(umlauts.substr(0, 110) + "…"));
}

TEST(Fitted, TheFirstColumnStays) { EXPECT_EQ(fitted(described(), 1).table.columns.size(), 1u); }

}  // namespace
}  // namespace zl::test
