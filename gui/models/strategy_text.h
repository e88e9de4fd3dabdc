// What a strategy is, in words, for the tool tips of names that are short; and whether it fits.
// Ownership: values. Threads: pure functions.
#pragma once

#include <QString>

#include "scenarios/planner/study.h"

namespace zl::gui {

// "✓ yes", "? maybe", "✗ no".
std::string fits_text(Fits fits);

// Some lines: what is sharded, what is recomputed and offloaded, precision, batch.
QString describe(const StrategyStudy& strategy);

}  // namespace zl::gui
