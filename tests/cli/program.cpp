#include "tests/cli/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace zl::cli_test {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void become_program(const Home& home, const std::vector<std::string>& arguments,
                                 const std::string& out_path, int errors) {
  const int out = open(out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(out, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  for (const char* name : {"DATA", "CONFIG", "CACHE"}) {
    setenv(("XDG_" + std::string(name) + "_HOME").c_str(), home.folder().c_str(), 1);
  }
  unsetenv("ZEROLAB_DB");
  std::vector<char*> argv{const_cast<char*>(ZL_PROGRAM)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(ZL_PROGRAM, argv.data());
  _exit(127);
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string Home::file(const std::string& name, const std::string& text) const {
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

Program::Program(const Home& home, const std::vector<std::string>& arguments)
    : out_path_(home.path("stdout")) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
  pid_ = fork();
  if (pid_ == 0) become_program(home, arguments, out_path_, ends[1]);
  close(ends[1]);
  errors_ = ends[0];
}

Program::~Program() {
  if (errors_ >= 0) close(errors_);
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

bool Program::read_some() {
  std::array<char, 4096> buffer;
  const ssize_t got = read(errors_, buffer.data(), buffer.size());
  if (got > 0) err_.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

bool Program::wait_for_message(const std::string& text) {
  while (err_.find(text) == std::string::npos) {
    if (!read_some()) return false;
  }
  return true;
}

void Program::send(int signal) const { kill(pid_, signal); }

Output Program::finish() {
  while (read_some()) {
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contents(out_path_),
          err_};
}

Output zerolab(const Home& home, const std::vector<std::string>& arguments) {
  return Program(home, arguments).finish();
}

std::string data_file(const std::string& name) {
  return std::string(ZL_SOURCE_DIR) + "/tests/cli/data/" + name;
}

std::string refused(const Home& home, const std::vector<std::string>& arguments, int code) {
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, code) << output.err;
  EXPECT_EQ(output.out, "");
  EXPECT_EQ(output.err.rfind("zerolab: error: ", 0) == 0 ||
                output.err.find("\nzerolab: error: ") != std::string::npos,
            true)
      << output.err;
  return output.err;
}

}  // namespace zl::cli_test
