#include "results/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/ratio_interval.h"

namespace zl {
namespace {

double relative_change(double a, double b, Worse worse) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  // Losing a number is a change for the worse, gaining one for the better.
  const double worst = worse == Worse::less ? -kInfinity : kInfinity;
  if (std::isnan(b)) return worst;
  if (std::isnan(a)) return -worst;
  if (a == 0) return b > 0 ? kInfinity : -kInfinity;
  return std::isinf(a) ? std::copysign(kInfinity, b - a) : (b - a) / std::abs(a);
}

// How the times of two sides scatter.
struct Scatter {
  bool is_measured = false;
  std::optional<std::pair<double, double>> ratio;  // none: too few steps
};

class Deltas {
 public:
  Deltas(bool has_a, bool has_b) : has_a_(has_a), has_b_(has_b) {}

  void add_failed(bool a, bool b) {
    if (a != b) push("failed", a, b, Worse::more);
  }
  void add(const std::string& name, double a, double b, Worse worse) {
    if (a == 0 && b == 0) return;
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    push(name, has_a_ ? a : kNone, has_b_ ? b : kNone, worse);
    if (!has_a_ || !has_b_) deltas_.back().relative = kNone;
  }
  void add_if_measured(const char* name, double a, double b, Worse worse) {
    if (a != 0 && b != 0) add(name, a, b, worse);
  }
  // A time that scatters as its steps do, or a rate, which is its reciprocal.
  void add_measured(const char* name, double a, double b, Worse worse, const Scatter& scatter) {
    const std::size_t before = deltas_.size();
    add_if_measured(name, a, b, worse);
    if (deltas_.size() == before || !scatter.is_measured) return;
    MetricDelta& delta = deltas_.back();
    delta.scatters = true;
    if (!scatter.ratio) return;
    const auto [low, high] = *scatter.ratio;
    const bool rate = worse == Worse::less;
    delta.low = (rate ? 1 / high : low) - 1;
    delta.high = (rate ? 1 / low : high) - 1;
  }
  void add_peak(const std::string& name, const TaggedBytes& a, const TaggedBytes& b) {
    add(name, static_cast<double>(a.total()), static_cast<double>(b.total()), Worse::more);
    for (std::size_t i = 0; i < kMemoryTags; ++i) {
      add(name + "." + name_of(static_cast<MemoryTag>(i)), static_cast<double>(a.tag[i]),
          static_cast<double>(b.tag[i]), Worse::informative);
    }
  }
  std::vector<MetricDelta> sorted() && {
    std::sort(deltas_.begin(), deltas_.end(), [](const MetricDelta& x, const MetricDelta& y) {
      const auto size = [](double relative) {
        return std::isnan(relative) ? -1 : std::abs(relative);
      };
      const double size_x = size(x.relative), size_y = size(y.relative);
      return size_x != size_y ? size_x > size_y : x.name < y.name;
    });
    return std::move(deltas_);
  }

 private:
  void push(const std::string& name, double a, double b, Worse worse) {
    deltas_.push_back({name, a, b, b - a, relative_change(a, b, worse), worse});
  }
  bool has_a_, has_b_;
  std::vector<MetricDelta> deltas_;
};

// The first step warms up.
void add_steps(const RunResult& run, std::vector<double>& steps) {
  const std::size_t first = run.step_seconds.size() > 1 ? 1 : 0;
  steps.insert(steps.end(), run.step_seconds.begin() + static_cast<std::ptrdiff_t>(first),
               run.step_seconds.end());
}

std::vector<double> samples_of(std::span<const RunResult> repeats, bool medians) {
  std::vector<double> samples;
  for (const RunResult& run : repeats) {
    medians ? samples.push_back(run.step_time.median) : add_steps(run, samples);
  }
  std::erase_if(samples, [](double seconds) { return !(seconds > 0); });
  return samples;
}

Scatter scatter_of(std::span<const RunResult> a, std::span<const RunResult> b) {
  constexpr std::size_t kEnough = 4;
  if (a.front().predicted || b.front().predicted) return {};
  const bool medians = a.size() >= kEnough && b.size() >= kEnough;
  return {true, ratio_interval(samples_of(a, medians), samples_of(b, medians))};
}

void add_times(Deltas& deltas, const RunResult& a, const RunResult& b, const Scatter& scatter) {
  deltas.add_measured("tokens_per_second", a.tokens_per_second, b.tokens_per_second, Worse::less,
                      scatter);
  deltas.add_measured("step_time_seconds", a.step_time.median, b.step_time.median, Worse::more,
                      scatter);
  deltas.add_measured("mfu", a.mfu, b.mfu, Worse::less, scatter);
  const auto part = [&](const char* name, double TimeBreakdown::*seconds) {
    deltas.add(std::string("time.") + name, a.time.*seconds, b.time.*seconds, Worse::informative);
  };
  part("compute", &TimeBreakdown::compute);
  part("exposed_communication", &TimeBreakdown::exposed_communication);
  part("offload_stall", &TimeBreakdown::offload_stall);
  part("bubble", &TimeBreakdown::bubble);
  part("optimizer", &TimeBreakdown::optimizer);
}

// What was interrupted did what it was asked to until then.
bool gave_up(const RunResult& run) {
  return run.outcome != Outcome::ok && run.outcome != Outcome::interrupted;
}

}  // namespace

bool has_numbers(const RunResult& run) { return run.outcome == Outcome::ok || run.steps > 0; }

bool MetricDelta::is_worse(double threshold) const {
  const double least = scatters ? (worse == Worse::less ? -high : low)
                                : (worse == Worse::less ? -relative : relative);
  return worse != Worse::informative && least > threshold;
}

bool MetricDelta::is_better(double threshold) const {
  const double least = scatters ? (worse == Worse::less ? low : -high)
                                : (worse == Worse::less ? relative : -relative);
  return worse != Worse::informative && least > threshold;
}

const RunResult& representative(std::span<const RunResult> repeats) {
  std::vector<const RunResult*> order;
  for (const RunResult& run : repeats) order.push_back(&run);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>((order.size() - 1) / 2);
  std::nth_element(order.begin(), middle, order.end(), [](const RunResult* x, const RunResult* y) {
    return x->step_time.median < y->step_time.median;
  });
  return **middle;
}

std::vector<MetricDelta> compare(const RunResult& a, const RunResult& b) {
  return compare(std::span(&a, 1), std::span(&b, 1));
}

std::vector<MetricDelta> compare(std::span<const RunResult> all_a,
                                 std::span<const RunResult> all_b) {
  const RunResult &a = representative(all_a), &b = representative(all_b);
  Deltas deltas(has_numbers(a), has_numbers(b));
  deltas.add_failed(gave_up(a), gave_up(b));
  const EvaluationPoint *best_a = best_evaluation(a), *best_b = best_evaluation(b);
  if (best_a != nullptr && best_b != nullptr) {
    deltas.add("best_validation_loss", best_a->loss, best_b->loss, Worse::more);
  }
  if (!a.loss.empty() && !b.loss.empty()) {
    deltas.add("final_loss", a.loss.back(), b.loss.back(), Worse::more);
  }
  add_times(deltas, a, b, scatter_of(all_a, all_b));
  deltas.add_peak("peak_device_bytes", a.peak_device, b.peak_device);
  deltas.add_peak("peak_host_bytes", a.peak_host, b.peak_host);
  deltas.add_peak("peak_nvme_bytes", a.peak_nvme, b.peak_nvme);
  deltas.add("reserved_device_bytes", static_cast<double>(a.reserved_device),
             static_cast<double>(b.reserved_device), Worse::more);
  if (a.software_held.is_known() && b.software_held.is_known()) {
    deltas.add("software_device_bytes", static_cast<double>(a.software_held.device),
               static_cast<double>(b.software_held.device), Worse::more);
  }
  deltas.add("wire_bytes_per_step", static_cast<double>(a.wire_bytes_per_step),
             static_cast<double>(b.wire_bytes_per_step), Worse::more);
  deltas.add("skipped_steps", static_cast<double>(a.skipped_steps),
             static_cast<double>(b.skipped_steps), Worse::informative);
  return std::move(deltas).sorted();
}

std::vector<MetricDelta> regressions(std::span<const MetricDelta> deltas, double threshold) {
  std::vector<MetricDelta> worse;
  for (const MetricDelta& delta : deltas) {
    if (delta.is_worse(threshold)) worse.push_back(delta);
  }
  return worse;
}

double parse_threshold(std::string_view text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string_view number = percent ? text.substr(0, text.size() - 1) : text;
  const double value = real_in(number).value_or(-1);
  const std::string given = "\"" + shortened(text) + "\"";
  if (value < 0) {
    throw Error(ErrorCode::usage,
                "threshold: " + given + " is no share in percent such as 5 or 5%");
  }
  if (!percent && value > 0 && value < 1) {
    throw Error(ErrorCode::usage, fmt::format("threshold: {} could be {:g} % or {:g} %; write it "
                                              "with the sign, such as 5%",
                                              given, value * 100, value));
  }
  return value / 100;
}

}  // namespace zl
