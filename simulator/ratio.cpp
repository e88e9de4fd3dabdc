#include "simulator/ratio.h"

#include <algorithm>
#include <cmath>

#include "simulator/timeline.h"

namespace zl::sim {
namespace {

// Of the logarithm; the lower end of a bar may be cut at the roofline.
double whole_error(const RunResult& run) {
  if (!run.predicted || run.step_time_high <= run.step_time.median) return 0;
  return std::log(run.step_time_high / run.step_time.median) / kNineInTen;
}

bool err_together(const RunResult& a, const RunResult& b) {
  return a.predicted && b.predicted && a.own_step_error > 0 && b.own_step_error > 0 &&
         a.priced_from == b.priced_from && a.ranks == b.ranks &&
         a.setup.cluster == b.setup.cluster && a.setup.stack == b.setup.stack;
}

}  // namespace

std::optional<StepRatio> step_ratio(const RunResult& a, const RunResult& b) {
  if (a.step_time.median <= 0 || b.step_time.median <= 0) return {};
  if (!a.predicted && !b.predicted) return {};
  const double ratio = b.step_time.median / a.step_time.median;
  const double whole = std::hypot(whole_error(a), whole_error(b));
  const double own = std::hypot(a.own_step_error, b.own_step_error);
  const double error = err_together(a, b) ? std::min(own, whole) : whole;
  const double factor = std::exp(kNineInTen * error);
  return StepRatio{ratio, ratio / factor, ratio * factor};
}

}  // namespace zl::sim
