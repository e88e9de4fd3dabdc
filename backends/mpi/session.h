// MPI's life in this process: it begins with the first call of processes() and ends with the
// program. Beginning and ending wait for all processes, and for none of them longer than said.
// Ownership: one for the process. Threads: any, but for set_patience.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "core/threads/watchdog.h"

namespace zl::mpi {

struct Processes {
  int rank = 0, count = 1;
  int local = 1;  // of this node
  std::int64_t machine_memory =
      0;  // of this node, when MPI started: the least that one of them saw
};
// Error{unavailable} when MPI cannot be called from several threads.
const Processes& processes();

// How long MPI's own calls may wait for other processes; a minute until it is said.
void set_patience(std::chrono::milliseconds patience);

// The other processes that have come to their end, whether or not they have said why: they join
// nothing any more.
std::vector<int> departed();

// "1, 2".
std::string list(const std::vector<int>& ranks);

// Ends every process of the job that can be reached, and this one in any case within a second.
[[noreturn]] void abort(int exit_code);

// One line on stderr.
void print_error(const std::string& message);

// Watches a call of MPI's own: it may last as long as set_patience said, then the process says so
// and ends.
[[nodiscard]] WatchedCall watch_call(const std::string& call);
// One that each process makes once, so that who has come to it can be told.
[[nodiscard]] WatchedCall watch_only_call(const std::string& call);

}  // namespace zl::mpi
