// The same runs at several moments: who shares the machine slows it down for seconds or minutes, or
// leaves it alone for some. Prices are those of the moment in the middle, as the next run may
// expect, or of the quietest, as a machine that is left alone has them.
// Ownership: refers to traces while it runs. Threads: pure functions of their arguments.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/measured.h"

namespace zl::sim {

// Seconds of the run's median step, of a quiet run that of its quicker half; infinite where it has
// not two timed steps.
double typical_step(const MeasuredTrace& run);

// Whether the typical steps at two moments differ by 5 % at most. Then a third would not move the
// moment in the middle by more: it lies between them or is one of them.
bool agree(double one, double other);

// Keeps, of the runs that `name_of` calls the same, the one whose median step is in the middle (of
// an even number the longer of two), and says of which (`moments`). Each run has one trace; of one
// without two timed steps nothing is known, and it stays only where no other has its name.
void keep_typical(std::vector<MeasuredTrace>& runs,
                  const std::function<std::string(int run)>& name_of);

// The same, but keeps the quickest of them, by the quicker half of their steps (`quiet`).
void keep_quietest(std::vector<MeasuredTrace>& runs,
                   const std::function<std::string(int run)>& name_of);

}  // namespace zl::sim
