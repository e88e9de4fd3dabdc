// Which of some predictions is the fastest, and how sure that is.
// Ownership: values. Threads: pure function.
#pragma once

#include <span>
#include <string>

#include "core/train/run_result.h"

namespace zl::cli {

// "Fastest: zero-2. Step times beside it (errors that both share cancel): zero-3 1.01x, 0.81 to
// 1.25, not decided; ...". Empty with fewer than two predictions, and where runs differ in more
// than their strategy.
std::string ratio_line(std::span<const RunResult> results);

}  // namespace zl::cli
