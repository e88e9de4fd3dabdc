// Fits the numbers of a software's profile to published runs, and finds how far it errs on runs
// that were left out.
// Ownership: values. Threads: fit_software uses all cores and blocks.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "scenarios/published/published_run.h"
#include "simulator/cluster/software.h"

namespace zl {

// What was left out: one source at a time; of GPUs of which there is one source, one shape of model
// and mesh at a time.
struct LeftOut {
  std::string group;
  sim::Generation generation = sim::Generation::unknown;
  std::vector<double> numbers;  // of the fit without them, in the order of its keys
  std::vector<double> errors;   // ln(measured / predicted) in that fit, of each configuration
  std::vector<double> every;    // likewise of every measurement, which bars are to hold
  double inside = 0;            // share of these in the bar that the other groups' give
};

struct SoftwareFit {
  sim::Software software;
  std::size_t rows = 0;
  double error = 0;  // root mean square of ln(measured / predicted) of what was fitted
  std::vector<LeftOut> left_out;
  std::map<sim::Generation, double> bars;  // relative error whose 90 % bar holds 9 of 10 left out
  std::map<sim::Generation, sim::TechniqueSets> techniques;  // that the runs used together
};

// priors: of the profile, where it has some. profile: where its own fits ended, the stored ones
// without a group included; a fit from there shows in a fraction of the time whether they still
// are the best.
enum class FitFrom : std::uint8_t { priors, profile };

// `keys`: of sim::fitted_numbers(). Of the measured steps among `runs` that ran this software, or
// one whose profile has these numbers from it (`base`); others, and steps put together from
// operators, are passed over. Numbers that no run tells stay where the fit begins. Each run is
// recorded once. Throws Error{invalid} where there are none.
SoftwareFit fit_software(const sim::Software& profile, std::span<const PublishedRun> runs,
                         const std::vector<std::string>& keys, FitFrom from = FitFrom::priors);

// The profile's text with the fitted numbers, those of the fits that left a group out, errors and
// keys in it.
std::string fitted_text(const std::string& profile, const SoftwareFit& fit,
                        const std::vector<std::string>& keys);

}  // namespace zl
