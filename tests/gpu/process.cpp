#include "tests/gpu/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "core/base/error.h"

namespace zl::gpu {
namespace {

struct Started {
  int process = -1, to = -1, from = -1;
};

Started start(const std::vector<std::string>& command) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
    throw Error(ErrorCode::failed, std::string("pipe: ") + std::strerror(errno));
  }
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int process = fork();
  if (process == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  return {process, in[1], out[0]};
}

int reap(int process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Appends what can be read until `deadline`; false at the end of the file or when time is up.
bool read_more(int from, double deadline, std::string& text) {
  const double left = deadline - now();
  pollfd waiting{from, POLLIN, 0};
  if (left <= 0 || poll(&waiting, 1, static_cast<int>(left * 1000) + 1) <= 0) return false;
  char block[65536];
  const ssize_t count = read(from, block, sizeof block);
  if (count > 0) text.append(block, static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string run_program(const std::vector<std::string>& command, double seconds,
                        const std::vector<int>& accepted) {
  const Started child = start(command);
  close(child.to);
  const double deadline = now() + seconds;
  std::string text;
  while (read_more(child.from, deadline, text)) {
  }
  close(child.from);
  const bool late = now() >= deadline;
  if (late) kill(child.process, SIGKILL);
  const int status = reap(child.process);
  const bool is_accepted = std::find(accepted.begin(), accepted.end(), status) != accepted.end();
  if (late || !is_accepted) {
    std::string line;
    for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
    throw Error(ErrorCode::failed,
                line + (late ? ": not done within " + std::to_string(seconds) + " s"
                             : ": exit status " + std::to_string(status)));
  }
  return text;
}

Worker::Worker(const std::vector<std::string>& command) : command_(command.back()) {
  signal(SIGPIPE, SIG_IGN);  // a worker that has died is found out when its answer is missing
  const Started child = start(command);
  process_ = child.process;
  to_ = child.to;
  from_ = child.from;
}

Worker::~Worker() {
  close(to_);
  close(from_);
  if (process_ > 0) {
    kill(process_, SIGKILL);
    reap(process_);
  }
}

Json Worker::ask(const Json& question, double seconds) {
  if (process_ <= 0) throw Error(ErrorCode::failed, command_ + ": has ended");
  const std::string line = question.dump() + "\n";
  const double deadline = now() + seconds;
  bool alive = write(to_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  std::size_t end = std::string::npos;
  while (alive && (end = buffer_.find('\n')) == std::string::npos) {
    alive = read_more(from_, deadline, buffer_);
  }
  if (end == std::string::npos) {
    kill(process_, SIGKILL);
    const int status = reap(process_);
    process_ = -1;
    throw Error(
        ErrorCode::failed,
        command_ + (now() >= deadline ? ": no answer within " + std::to_string(seconds) + " s"
                                      : ": ended with status " + std::to_string(status)));
  }
  const Json answer = Json::parse(buffer_.substr(0, end));
  buffer_.erase(0, end + 1);
  return answer;
}

}  // namespace zl::gpu
