// Reads back what `zerolab run -o json` wrote.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "core/train/run_result.h"

namespace zl::cli {

// All results of a file, those of several backends included, with the fields that compare() reads.
// Throws Error{invalid} naming the file and the key.
std::vector<RunResult> read_run_file(const std::string& path);

}  // namespace zl::cli
