// Other programs that a part runs: one that ends, and one that answers line by line.
// Ownership: a Worker owns its process and kills it when it is destroyed. Threads: one thread each.
#pragma once

#include <string>
#include <vector>

#include "tests/gpu/report.h"

namespace zl::gpu {

// Seconds of the steady clock.
double now();

// Runs a program and returns what it wrote to stdout; what it writes to stderr goes to ours. Throws
// Error{failed} naming the program when it cannot be started, is not done within `seconds` (it is
// killed) or ends with a status not in `accepted`.
std::string run_program(const std::vector<std::string>& command, double seconds,
                        const std::vector<int>& accepted = {0});

// A process that answers each line of its stdin with a line on stdout, both JSON.
class Worker {
 public:
  explicit Worker(const std::vector<std::string>& command);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Throws Error{failed} when the process has ended or does not answer within `seconds`; it is
  // killed then, and every later question fails at once.
  Json ask(const Json& question, double seconds);

 private:
  std::string command_;
  int process_ = -1, to_ = -1, from_ = -1;
  std::string buffer_;  // read beyond the last answer
};

}  // namespace zl::gpu
