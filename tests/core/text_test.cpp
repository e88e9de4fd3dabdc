// Text of others: what a terminal gets of it, how much a message has of it, what a name may be.
#include "core/base/text.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace zl {
namespace {

TEST(Text, OnlyWholeSequencesAreUtf8) {
  for (const char* good : {"", "zero-2", "größe", "€", "𝄞", "\xef\xbf\xbf"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\xff", "a\x80", "\xc0\xaf", "\xed\xa0\x80", "\xe2\x82",
                          "\xf5\x80\x80\x80", "\xf4\x90\x80\x80", "\xf0\x80\x80\x80"}) {
    EXPECT_FALSE(is_utf8(bad)) << visible(bad);
  }
}

TEST(Text, WhatTerminalsActOnIsShownInsteadOfDone) {
  EXPECT_EQ(visible("größe\tin\nGiB"), "größe\tin\nGiB");
  EXPECT_EQ(visible("\x1b]0;title\x07\x1b[2J\r"), "\\u001b]0;title\\u0007\\u001b[2J\\u000d");
  EXPECT_EQ(visible("\x7f\xc2\x9b"), "\\u007f\\u009b") << "DEL and the one-character CSI";
  EXPECT_EQ(visible("a\u202eb\u2066c\u2069"), "a\\u202eb\\u2066c\\u2069");
  EXPECT_EQ(visible(std::string("\0", 1)), "\\u0000");
  EXPECT_EQ(visible("a\xff\xc3"), "a\\xff\\xc3");
}

TEST(Text, LongValuesAreCutBetweenCharacters) {
  EXPECT_EQ(shortened("short"), "short");
  std::string umlauts;
  for (int i = 0; i < 200; ++i) umlauts += "ü";
  EXPECT_EQ(shortened(umlauts), umlauts);
  EXPECT_EQ(shortened(umlauts + "ü"), umlauts + "... (201 characters)");
  EXPECT_EQ(shortened(std::string(5'000'000, 'x')).size(),
            200u + sizeof "... (5000000 characters)" - 1);
}

TEST(Text, NamesThatPeopleUseAreNames) {
  for (const char* name : {"zero-2", "a-1.5b", "my run (old) + clip, 2", "größe µ", "战略", "a:b=c",
                           "zero-3+recompute-selective:attention,mlp", "\"<b>'", "x.", "1"}) {
    EXPECT_NO_THROW(require_name(name, "key")) << name;
  }
}

TEST(Text, NamesThatWouldBePathsOrMoreAreRefused) {
  const std::vector<std::string> bad = {"",
                                        "..",
                                        "../x",
                                        "a/b",
                                        "/abs",
                                        "a\\b",
                                        ".",
                                        ".x",
                                        "-x",
                                        "a..b",
                                        "a\nb",
                                        "\x1b[2J",
                                        "a\x7f",
                                        "\xff",
                                        "a\u202e",
                                        std::string("a\0", 2),
                                        std::string(201, 'x')};
  for (const std::string& name : bad) {
    try {
      require_name(name, "strategy.x-zerolab.name");
      ADD_FAILURE() << visible(name) << " was taken";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_EQ(message.find("strategy.x-zerolab.name: \""), 0u) << message;
      EXPECT_NE(message.find("; write another"), std::string::npos) << message;
      EXPECT_EQ(message, visible(message));
      EXPECT_LT(message.size(), 500u);
    }
  }
}

TEST(Text, FilesGiveTheirStem) {
  EXPECT_EQ(name_of_file("dir/zero-1.json"), "zero-1");
  EXPECT_EQ(name_of_file("a-1.5b"), "a-1.5b");
  EXPECT_EQ(name_of_file("/dev/stdin"), "stdin");
  EXPECT_EQ(name_of_file("dir/ds_config"), "ds_config");
}

TEST(Text, ANumberIsTheWholeOfIt) {
  EXPECT_EQ(integer_in("-12"), -12);
  EXPECT_EQ(real_in("2.5e3"), 2500);
  for (const char* text : {"", "+1", " 1", "1 ", "1x", "1.5", "0x10", "99999999999999999999"}) {
    EXPECT_EQ(integer_in(text), std::nullopt) << text;
  }
  for (const char* text : {"", ".", "1,5", "1e", "nan", "inf", "-infinity", "1e999"}) {
    EXPECT_EQ(real_in(text), std::nullopt) << text;
  }
}

TEST(Nearest, AWordOfMegabytesIsComparedByItsBeginning) {
  EXPECT_EQ(nearest("stagee" + std::string(5'000'000, 'e'), {"other", "stage"}), "stage");
}

}  // namespace
}  // namespace zl
