#include "core/base/files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/nearest.h"
#include "simulator/json/reading.h"
#include "tests/scenarios/message.h"

namespace zl {
namespace {

TEST(JsonReading, AcceptsComments) {
  const Json value = parse_json("{ // one\n \"a\": 1, /* two */ \"b\": [2] }", "f.json");
  EXPECT_EQ(value["a"], 1);
  EXPECT_EQ(value["b"][0], 2);
}

TEST(JsonReading, MalformedTextGivesFileLineAndColumn) {
  EXPECT_CONTAINS(message_of([] { parse_json("{\n  \"a\": 1,\n  \"b\": }\n", "dir/f.json"); }),
                  "dir/f.json:3:8: malformed JSON");
  EXPECT_CONTAINS(message_of([] { parse_json("{\"a\": 1,}", "f.json"); }), "f.json:1:9:");
  EXPECT_CONTAINS(message_of([] { parse_json("", "f.json"); }), "f.json:1:1:");
  EXPECT_CONTAINS(message_of([] { parse_json("{\"stage\": ZERO_STAGE}", "f.json"); }), "f.json:1:");
  EXPECT_CONTAINS(message_of([] { parse_json("{\"a\": 1e999}", "f.json"); }), "malformed JSON");
}

TEST(JsonReading, DuplicateKeysAreErrors) {
  EXPECT_CONTAINS(message_of([] { parse_json("{\"a\": 1, \"a\": 2}", "f.json"); }),
                  "\"a\" is given twice");
  EXPECT_CONTAINS(message_of([] { parse_json("{\"a\": {\"b\": {\"c\": 1, \"c\": 2}}}", "f"); }),
                  "\"a.b.c\" is given twice");
  EXPECT_CONTAINS(
      message_of([] { parse_json("{\"a\": [{\"b\": 1}, {\"b\": 1, \"b\": 2}]}", "f"); }),
      "\"a.b\" is given twice");
  EXPECT_NO_THROW(parse_json(
      "{\"a\": {\"x\": 1}, \"b\": {\"x\": 1, \"a\": 2}, \"c\": [{\"x\": 1}, {\"x\": 1}]}", "f"));
}

TEST(JsonReading, ASecondKeyIsNamedWithItsPlace) {
  EXPECT_EQ(
      message_of([] { parse_json("{\n  \"a\": 1,\n  \"b\": 2,\n  \"a\": 3\n}", "dir/f.json"); }),
      "dir/f.json:4:3: the key \"a\" is given twice; remove one");
  // The first of several, after a comment, and with a quote in its name.
  EXPECT_CONTAINS(message_of([] { parse_json("{/* \" */\"a\": 1, \"a\": 2, \"a\": 3}", "f"); }),
                  "f:1:17: ");
  EXPECT_CONTAINS(message_of([] { parse_json(R"({"a\"b": 1, "a\"b": 2})", "f"); }), "f:1:13: ");
  EXPECT_CONTAINS(message_of([] { parse_json(R"({"a\\": 1,"a\\": 2})", "f"); }), "f:1:11: ");
}

TEST(JsonReading, WholeNumbersMayBeWrittenAsFloats) {
  EXPECT_EQ(whole_number(Json(5e8)), 500'000'000);
  EXPECT_EQ(whole_number(Json(-3)), -3);
  EXPECT_FALSE(whole_number(Json(0.5)));
  EXPECT_FALSE(whole_number(Json(1e30)));
  EXPECT_FALSE(whole_number(Json(std::uint64_t{1} << 63)));
  EXPECT_FALSE(whole_number(Json("16")));
  EXPECT_FALSE(whole_number(Json(true)));
}

TEST(JsonReading, UnreadableFilesAreNamed) {
  EXPECT_CONTAINS(message_of([] { read_file("/no/such/file.json"); }), "/no/such/file.json");
}

// Plain recursion over the definition, against the table method.
std::size_t slow_distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::size_t change = a[0] == b[0] ? 0 : 1;
  std::size_t best = std::min({slow_distance(a.substr(1), b) + 1, slow_distance(a, b.substr(1)) + 1,
                               slow_distance(a.substr(1), b.substr(1)) + change});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    best = std::min(best, slow_distance(a.substr(2), b.substr(2)) + 1);
  }
  return best;
}

TEST(Nearest, MatchesTheDefinition) {
  const std::vector<std::string> words = {"",    "a",     "ab",    "ba",  "abc",
                                          "acb", "stage", "satge", "sage"};
  for (const std::string& a : words) {
    for (const std::string& b : words)
      EXPECT_EQ(edit_distance(a, b), slow_distance(a, b)) << a << b;
  }
  EXPECT_EQ(nearest("satge", {"other", "stage"}), "stage");
  EXPECT_EQ(nearest("x", {}), "");
}

}  // namespace
}  // namespace zl
