// What is said aloud of a strategy file before it runs.
// Ownership: none. Threads: the main thread.
#pragma once

#include "scenarios/deepspeed/imported_strategy.h"

namespace zl::cli {

// What the file leaves open or means differently, a line each; what has no effect here in one line
// of its own (with --verbose a line each), which ends with where more is said. On stderr.
void say_notes(const ImportedStrategy& imported,
               const char* where = "`zerolab show strategy` says why");

// Its warnings and what keeps it from running, each once.
void say_problems(const ImportedStrategy& imported);

}  // namespace zl::cli
