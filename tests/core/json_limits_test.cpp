// Depth of JSON and size of files, before anything recurses over them or holds them.
#include "core/base/json_limits.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

std::string lists(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string refusal(const std::string& text) {
  try {
    require_shallow_json(text, "f.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "";
}

TEST(JsonLimits, DepthIsNamedWithItsPlace) {
  EXPECT_EQ(refusal(lists(kMaxJsonDepth)), "");
  EXPECT_EQ(refusal("\n" + lists(kMaxJsonDepth + 1)),
            "f.json:2:101: lists and objects inside each other more than 100 deep; flatten it");
  EXPECT_NE(refusal(std::string(1'000'000, '[')), "");
  std::string objects;
  for (int i = 0; i <= kMaxJsonDepth; ++i) objects += "{\"a\":";
  EXPECT_NE(refusal(objects), "");
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[],";
  EXPECT_EQ(refusal(wide + "1]"), "");
}

TEST(JsonLimits, StringsAndCommentsDoNotCount) {
  const std::string many(1000, '[');
  for (const std::string& harmless : std::vector<std::string>{
           "\"" + many + "\"", R"("a\")" + many + "\"", R"("\\", 1)", "/* \" " + many + " */ 1",
           "// \" " + many + "\n1", "/*/ " + many + " */ 1", "\"" + many, "/* " + many, "/"}) {
    EXPECT_EQ(refusal(harmless), "") << harmless;
  }
}

// Where the parser sees an end that the scan does not, depth would slip through.
TEST(JsonLimits, StringsAndCommentsEndWhereTheyDoForTheParser) {
  const std::string many(1000, '[');
  for (const std::string& deep : std::vector<std::string>{
           "/* \" */" + many, "// \"\n" + many, "// \"\r" + many, R"("\"")" + many,
           R"("\\")" + many, "/* a *//* b */" + many, "/**/" + many, "/* *//**/" + many}) {
    EXPECT_NE(refusal(deep), "") << deep;
  }
}

class LargeFile {
 public:
  explicit LargeFile(std::uintmax_t size) {
    std::ofstream(path()) << "{}";
    std::filesystem::resize_file(path(), size);  // sparse: it takes no disk
  }
  std::string path() const { return folder_ / "large.json"; }

 private:
  test::TempFolder folder_;
};

TEST(ReadFile, LargeFilesAreRefusedBeforeTheyAreHeld) {
  const LargeFile file(std::uintmax_t{1} << 40);
  try {
    read_file(file.path());
    FAIL() << "a terabyte was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    EXPECT_EQ(std::string(error.what()).find(file.path() + ": has more than 64.00 MiB"), 0u);
  }
}

TEST(ReadFile, WhatHasNoSizeIsReadUpToTheLimit) {
  EXPECT_THROW(read_file("/dev/zero", 1000), Error);
  EXPECT_EQ(read_file("/dev/null"), "");
  const LargeFile file(1000);
  EXPECT_EQ(read_file(file.path(), 1000).size(), 1000u);
  EXPECT_THROW(read_file(file.path(), 999), Error);
}

TEST(IsFile, IsFalseWhereNoneCanBeLookedFor) {
  EXPECT_FALSE(is_file(std::string(100'000, 'x')));
  EXPECT_FALSE(is_file("/"));
  EXPECT_FALSE(is_file(""));
}

}  // namespace
}  // namespace zl
