// The built `zerolab` as a subprocess, with a home folder of its own.
// Ownership: a Program owns its process and kills it when it dies; a Home removes its folder.
// Threads: one at a time.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temp_folder.h"

namespace zl::cli_test {

using Json = nlohmann::json;

struct Output {
  int code = -1;  // 128 + N when signal N ended it
  std::string out, err;
};

// Configuration, data, cache and database of one test.
class Home {
 public:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  // Writes a file into it; returns its path.
  std::string file(const std::string& name, const std::string& text) const;
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
};

class Program {
 public:
  Program(const Home& home, const std::vector<std::string>& arguments);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads stderr until it holds `text`; false when the program ended before.
  bool wait_for_message(const std::string& text);
  void send(int signal) const;
  Output finish();

 private:
  bool read_some();

  std::string out_path_;
  pid_t pid_ = -1;
  int errors_ = -1;  // the reading end of its stderr
  std::string err_;
};

Output zerolab(const Home& home, const std::vector<std::string>& arguments);

// tests/cli/data/NAME.
std::string data_file(const std::string& name);

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE(std::string(text).find(part), std::string::npos) << "in: " << (text)

// Runs, expects the exit code and nothing on stdout, and returns stderr.
std::string refused(const Home& home, const std::vector<std::string>& arguments, int code);

}  // namespace zl::cli_test
