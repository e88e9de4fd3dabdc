#include "simulator/ratio.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "simulator/error_bar.h"

namespace zl::sim {
namespace {

// Of the logarithm; the lower end of a bar may be cut at the roofline.
double whole_error(const RunResult& run) {
  if (!run.predicted || run.step_time_high <= run.step_time.median) return 0;
  return std::log(run.step_time_high / run.step_time.median) / kNineInTen;
}

// Whether published runs support the strategy or not, its prices are of one data sheet.
bool has_same_prices(const RunResult& a, const RunResult& b) {
  return a.priced_from == b.priced_from || (rests_on_data_sheet(a) && rests_on_data_sheet(b));
}

bool err_together(const RunResult& a, const RunResult& b) {
  return a.predicted && b.predicted && a.own_step_error > 0 && b.own_step_error > 0 &&
         has_same_prices(a, b) && a.ranks == b.ranks && a.setup.cluster == b.setup.cluster &&
         a.setup.software == b.setup.software;
}

bool is_timed_prediction(const RunResult& run) {
  return run.predicted && run.outcome == Outcome::ok && run.step_time.median > 0;
}

bool are_alike(const RunResult& a, const RunResult& b) {
  return a.setup == b.setup && a.ranks == b.ranks && a.precision == b.precision;
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

std::string readable(const StepRatio& ratio) {
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%.2fx, %.2f to %.2f", ratio.value, ratio.low,
                ratio.high);
  return text.data() + std::string(ratio.is_decided() ? "" : ", not decided");
}

std::string step_ratio_line(const RunResult& a, const RunResult& b, std::string_view name) {
  const auto ratio = step_ratio(a, b);
  if (!ratio) return "";
  return "A step of " + std::string(name) + " takes " + readable(*ratio) + " (9 times out of 10; " +
         (err_together(a, b) ? "errors that both share cancel)" : "their errors do not cancel)");
}

const RunResult* fastest_like(const RunResult& run, std::span<const RunResult* const> runs) {
  if (!is_timed_prediction(run)) return nullptr;
  const RunResult* fastest = &run;
  bool alone = true;
  for (const RunResult* each : runs) {
    if (each == &run || !is_timed_prediction(*each) || !are_alike(*each, run)) continue;
    alone = false;
    if (each->step_time.median < fastest->step_time.median) fastest = each;
  }
  return alone ? nullptr : fastest;
}

}  // namespace zl::sim
