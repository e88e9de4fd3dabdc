// Cells that several tables have. Ownership: values. Threads: pure functions.
#pragma once

#include "results/format.h"

namespace zl {

// No value for 0, which is "not measured".
inline Cell positive(double value) { return value > 0 ? Cell(value) : Cell(); }

// No value for what is not known.
inline Cell known_text(const std::string& text) { return text.empty() ? Cell() : Cell(text); }
inline Cell known_count(std::int64_t count) { return count != 0 ? Cell(count) : Cell(); }

}  // namespace zl
