// The file tier on a local file system: io_uring with O_DIRECT where the kernel allows each, plain
// reads and writes where it does not.
// Ownership: owns the files of one rank in a folder of its own (StorageFolder) and removes both.
// Threads: as in core/device/storage.h.
//
// Durability: a write is complete when the system has taken it, without fsync. The death of the
// process leaves the generation before or the new one; after a loss of power recover() finds the
// newest one whose checksums hold.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "backends/cpu/io_engine.h"
#include "core/device/storage.h"

namespace zl::cpu {

// Files go to <folder>/zerolab-<process>-<n>-rank<rank>/. Error{failed} naming the folder, what the
// system said and the fix. A file that stands still for `timeout` ends the process (watched() of
// io_queue.h).
std::unique_ptr<Storage> make_file_storage(
    const std::string& folder, int rank, const AioConfig& config,
    std::chrono::milliseconds timeout = std::chrono::minutes(1));
// With an engine for each direction: reads and writes run side by side.
std::unique_ptr<Storage> make_file_storage(const std::string& folder, int rank,
                                           std::unique_ptr<IoEngine> reader,
                                           std::unique_ptr<IoEngine> writer);

// Reads the newest whole generation of an object's file into `parts`; its number. Error{failed}
// when there is none.
std::uint64_t recover(const std::string& file, const ObjectLayout& layout,
                      std::span<const ObjectPart> parts);

// How files in `folder` are reached: "io_uring, O_DIRECT". Makes and removes a small file.
std::string describe_file_access(const std::string& folder);

}  // namespace zl::cpu
