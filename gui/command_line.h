// The `zerolab` line that reproduces a study without a window.
// Ownership: values. Threads: pure function.
#pragma once

#include <string>

#include "scenarios/planner/document.h"

namespace zl::gui {

// `zerolab run ...` with options where they say everything, checked by the scenario's content hash;
// else the scenario as a file written by the shell. Throws Error for an invalid document.
std::string command_line(const Document& document);

}  // namespace zl::gui
