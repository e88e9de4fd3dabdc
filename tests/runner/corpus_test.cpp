// The cached King James Bible: made once, appears whole, and says how to get what is missing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/run/corpus.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

// Sets a variable for one test and puts the old value back.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

class Corpus : public ::testing::Test {
 protected:
  Corpus() { fs::create_directories(folder_ / "bin"); }

  std::string cache() const { return (folder_ / "cache").string(); }

  // A stand-in for the program `bible`.
  void put_program(const std::string& script) const {
    const fs::path path = folder_ / "bin" / "bible";
    std::ofstream(path) << "#!/bin/sh\n" << script;
    fs::permissions(path, fs::perms::owner_all);
  }

  Error error_of_call() const {
    try {
      king_james_bible();
    } catch (const Error& error) {
      return error;
    }
    return {ErrorCode::regression, "no error"};
  }

  bool cache_is_empty() const {
    return fs::directory_iterator(folder_ / "cache" / "zerolab") == fs::directory_iterator();
  }

  test::TempFolder folder_;
};

TEST_F(Corpus, RunsTheProgramOnceAndKeepsItsText) {
  put_program("echo \"$1 $2\"; echo run >> '" + (folder_ / "runs").string() + "'\n");
  const Variable xdg("XDG_CACHE_HOME", cache());
  const Variable path("PATH", (folder_ / "bin").string());
  EXPECT_EQ(king_james_bible(), cache() + "/zerolab/kjv.txt");
  EXPECT_EQ(king_james_bible(), cache() + "/zerolab/kjv.txt");
  EXPECT_EQ(read_file(cache() + "/zerolab/kjv.txt"), "-f gen1:1-rev22:21\n");
  EXPECT_EQ(read_file((folder_ / "runs").string()), "run\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(cache() + "/zerolab"), {}), 1);
}

TEST_F(Corpus, DefaultsToTheHomeFolder) {
  put_program("echo text\n");
  const Variable xdg("XDG_CACHE_HOME", "relative/is/ignored");
  const Variable home("HOME", folder_.string());
  const Variable path("PATH", (folder_ / "bin").string());
  EXPECT_EQ(king_james_bible(), (folder_ / ".cache/zerolab/kjv.txt").string());
}

TEST_F(Corpus, AMissingProgramIsUnavailableAndNamesThePackage) {
  const Variable xdg("XDG_CACHE_HOME", cache());
  const Variable path("PATH", (folder_ / "bin").string());
  const Error error = error_of_call();
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_NE(std::string(error.what()).find("apt-get install bible-kjv"), std::string::npos)
      << error.what();
  EXPECT_TRUE(cache_is_empty());
}

TEST_F(Corpus, AFailingProgramLeavesNoFile) {
  const Variable xdg("XDG_CACHE_HOME", cache());
  const Variable path("PATH", (folder_ / "bin").string());
  for (const char* script : {"echo half; exit 3\n", "exit 0\n", "kill -9 $$\n"}) {
    put_program(script);
    EXPECT_EQ(error_of_call().code(), ErrorCode::failed) << script;
    EXPECT_TRUE(cache_is_empty()) << script;
  }
}

TEST_F(Corpus, AnUnusableCacheFolderIsNamed) {
  std::ofstream(folder_ / "cache") << "a file where the folder should be";
  const Variable xdg("XDG_CACHE_HOME", cache());
  const Error error = error_of_call();
  EXPECT_EQ(error.code(), ErrorCode::failed);
  EXPECT_NE(std::string(error.what()).find(cache()), std::string::npos) << error.what();
}

TEST_F(Corpus, TheRealTextStartsAtGenesis) {
  const Variable xdg("XDG_CACHE_HOME", cache());
  if (std::system("command -v bible >/dev/null 2>&1") != 0) GTEST_SKIP() << "bible-kjv is missing";
  const std::string text = read_file(king_james_bible());
  EXPECT_GT(text.size(), 4'000'000u);
  EXPECT_NE(text.substr(0, 200).find("In the beginning God created the heaven and the earth"),
            std::string::npos);
  EXPECT_NE(text.find("The grace of our Lord Jesus Christ", text.size() - 300), std::string::npos);
}

}  // namespace
}  // namespace zl
