// Which block size and depth the file tier is fastest with in a folder: measured on objects as an
// offloaded run keeps them, checksums included.
// Ownership: all files are removed again. Threads: the caller's.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/device/storage.h"

namespace zl {

struct FileTuningOptions {
  std::string folder = ".";
  std::int64_t object_bytes = std::int64_t{256} << 20;  // at most; slow disks get smaller ones
  double seconds = 20;                                  // for all settings together, about
  std::function<void(int done, int total)> progress;
  const std::atomic<bool>* stop = nullptr;  // when it turns true, measuring ends soon
};

// Medians, in bytes per second.
struct FileRate {
  AioConfig aio;
  double read = 0, write = 0;
};

struct FileTuning {
  std::string access;  // how the files were reached: "io_uring, O_DIRECT"
  std::int64_t object_bytes = 0;
  std::vector<FileRate> rates;  // in the order of measuring
  FileRate best;                // moves a byte there and back soonest, with the least memory
  int skipped = 0;              // settings that the time did not suffice for
};

// Error{failed} naming the folder, what is wrong with it and the fix: missing, not writable, less
// free space than two slots of an object take. Error{invalid} for an object_bytes below 1 MiB;
// Error{interrupted} when options.stop turned true.
FileTuning tune_files(const FileTuningOptions& options);

// What is recommended, as the section of a configuration: {"aio":{"block_size":..,...}}.
std::string aio_json(const AioConfig& aio);

}  // namespace zl
