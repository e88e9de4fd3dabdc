// Fits the numbers of a software's profile to published runs, and finds how far it errs on runs
// that were left out.
// Ownership: values. Threads: fit_software uses all cores and blocks.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "scenarios/published/published_run.h"
#include "simulator/cluster/software.h"

namespace zl {

struct FitOptions {
  std::vector<std::string> keys;  // of sim::fitted_numbers(); empty: those that the profile lists
  std::size_t most_rows = 60;     // of each source, evenly taken
};

// What was left out: one source at a time; of one source, one shape of model at a time.
struct LeftOut {
  std::string group;
  std::vector<double> errors;  // ln(measured / predicted), of the fit without them
};

struct SoftwareFit {
  sim::Software software;
  std::size_t rows = 0;
  double error = 0;  // root mean square of ln(measured / predicted) of what was fitted
  std::vector<LeftOut> left_out;
  std::map<sim::Generation, double> bars;  // relative error whose 90 % bar holds 9 of 10 left out
};

// The runs of that software among `runs`; others are passed over. Throws Error{invalid} where there
// are none.
SoftwareFit fit_software(const sim::Software& start, std::span<const PublishedRun> runs,
                         const FitOptions& options);

// The profile's text with the fitted numbers, errors and keys in it.
std::string fitted_text(const std::string& profile, const SoftwareFit& fit,
                        const std::vector<std::string>& keys);

}  // namespace zl
