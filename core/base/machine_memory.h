// How much memory runs may take of this machine. Ownership: values. Threads: any.
#pragma once

#include <cstdint>
#include <string>

namespace zl {

// Bytes that the system would still give this process: MemAvailable of /proc/meminfo, or what a
// control group that the process is in (either version) leaves, whichever is less. `root` is where
// /proc and /sys are found.
std::int64_t available_memory(const std::string& root = "/");

// Bytes that the runs of this machine may reserve, all ranks together: what the environment's
// ZEROLAB_MEMORY says ("16GiB"), else fifteen sixteenths of what is available now, the rest being
// for what no pool counts. Throws Error{invalid} naming the variable.
std::int64_t machine_memory();

}  // namespace zl
