// What is left of a long training once failures and checkpoints have had their part.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>

namespace zl::sim {

// Failures come at random, as often at any time (exponential); one ends the work of all ranks, who
// read the last checkpoint and go on from there. Seconds.
struct FailureModel {
  double mean_between = 0;  // of all devices together
  double write = 0;         // a checkpoint; nobody trains meanwhile
  double restart = 0;       // until training goes on after a failure; may itself be cut short
};

// Share of the time that is training which lasts, with a checkpoint after `interval` seconds of it:
// Daly 2006 (Future Generation Computer Systems 22), "A higher order estimate of the optimum
// checkpoint interval for restart dumps", eq. 20, exact for this model.
double goodput(const FailureModel& failures, double interval);

// Intervals between checkpoints, seconds of training: Young 1974, sqrt(2 write mean_between); Daly
// 2006, eq. 37; and the one that goodput() is largest for.
double young_interval(const FailureModel& failures);
double daly_interval(const FailureModel& failures);
double best_interval(const FailureModel& failures);

// The same share, of `steps` steps of `step_seconds` that were played through with a checkpoint
// after every `each` of them and failures drawn by the seed.
double played_goodput(const FailureModel& failures, double step_seconds, std::int64_t each,
                      std::int64_t steps, std::uint64_t seed);

}  // namespace zl::sim
