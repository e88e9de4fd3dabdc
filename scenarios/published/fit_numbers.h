// Numbers of a profile that make predictions of recorded runs come out as they were measured.
// Ownership: a FitRun holds its recording. Threads: functions use all cores and block.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/published/record_published.h"
#include "simulator/cluster/software.h"

namespace zl {

struct FitRun {
  std::string group, source;
  double seconds = 0, weight = 1;
  std::vector<double> every;             // seconds, all measurements
  std::optional<sim::Software> derived;  // a profile that has the fitted numbers from its base
  sim::ClusterSpec cluster;              // without the software
  RecordedRun recorded;
};
using FitRuns = std::vector<const FitRun*>;

// Predicted seconds and ln(measured / predicted) of each.
std::vector<double> predicted_seconds(const sim::Software& software, const FitRuns& runs);
std::vector<double> errors_of(const sim::Software& software, const FitRuns& runs);

// The errors, and how they change with the logarithm of each number there.
struct Linearized {
  std::vector<std::string> keys;
  std::vector<double> errors;               // by run
  std::vector<std::vector<double>> slopes;  // by key, by run
};

struct FittedNumbers {
  sim::Software software;
  Linearized there;
};

// Gauss-Newton on logarithms. A run that is far off pulls like an absolute error, not like a
// square; numbers are pulled weakly towards those of `prior`, and stay in their ranges. Begins at
// `start`, which stays where nothing promises to be better, or, without one, at the prior and scans
// far numbers of the host first.
FittedNumbers fit_numbers(const sim::Software& prior, const sim::Software* start,
                          const FitRuns& runs, const std::vector<std::string>& keys);

// One without the runs of a group, with the slopes of a fit of all of them; begins at `start`, or,
// without one, at that fit.
sim::Software fit_without(const std::string& group, const sim::Software& prior,
                          const sim::Software& fitted, const Linearized& there,
                          const sim::Software* start, const FitRuns& runs);

}  // namespace zl
