// The same runs at several moments: who shares the machine slows it down for minutes, which is no
// price of it.
// Ownership: refers to traces while it runs. Threads: pure function of its arguments.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "simulator/measured.h"

namespace zl::sim {

// Seconds of the run's median step; infinite where it has not two timed steps.
double typical_step(const MeasuredTrace& run);

// Whether nobody slowed down the two quickest of these steps of one run: they differ by 5 % at
// most.
bool is_settled(std::vector<double> steps);

// Keeps, of the runs that `name_of` calls the same, the one whose median step took least, and says
// of how many (`moments`). Returns how much longer the others took: the root of the mean, over all
// names that have others, of the mean square of the logarithm of their step over that one's; 0
// where there are none. Each run has one trace; of one without two timed steps nothing is known,
// and it stays only where no other has its name.
double keep_quickest(std::vector<MeasuredTrace>& runs,
                     const std::function<std::string(int run)>& name_of);

}  // namespace zl::sim
