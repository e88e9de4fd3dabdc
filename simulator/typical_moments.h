// The same run at several moments: who shares the machine slows it down for seconds or minutes, or
// leaves it alone for some. Prices are of the moment in the middle, as the next run may expect, or
// of the quietest, as a machine that is left alone has them. Of a GPU, which is ours, all count.
// Ownership: refers to traces while it runs. Threads: pure functions of their arguments.
#pragma once

#include <cstddef>
#include <vector>

#include "simulator/measured.h"

namespace zl::sim {

enum class Moments { all, typical, quiet };

// Seconds of the run's median step, of a quiet run that of its quicker half; infinite where it has
// not two timed steps.
double typical_step(const MeasuredTrace& run);

// Whether the typical steps at two moments differ by 5 % at most. Then a third would not move the
// moment in the middle by more: it lies between them or is one of them.
bool agree(double one, double other);

// What the runs of one program at several moments took.
struct Watched {
  std::vector<double> steps;  // seconds of each run's typical step
  double seconds = 0;         // of all of their steps

  void add(const MeasuredTrace& run);
};

// Whether the runs suffice: of all three; of typical ones two that agree, or three; of quiet ones
// the two quickest agree and were found in five seconds of steps, since what others do lasts for
// seconds, or there are six.
bool is_settled(const Watched& runs, Moments moments);

// The run that counts, by its place among at least one: the quickest where quiet ones are asked
// for, else the one whose step is in the middle, of an even number the longer of two.
std::size_t run_that_counts(const Watched& runs, Moments moments);

}  // namespace zl::sim
