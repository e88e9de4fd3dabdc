#include "results/compare.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/base/error.h"

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

void add_times(Deltas& deltas, const RunResult& a, const RunResult& b) {
  deltas.add_if_measured("tokens_per_second", a.tokens_per_second, b.tokens_per_second,
                         Worse::less);
  deltas.add_if_measured("step_time_seconds", a.step_time.median, b.step_time.median, Worse::more);
  deltas.add_if_measured("mfu", a.mfu, b.mfu, Worse::less);
  const auto part = [&](const char* name, double TimeBreakdown::*seconds) {
    deltas.add(std::string("time.") + name, a.time.*seconds, b.time.*seconds, Worse::informative);
  };
  part("compute", &TimeBreakdown::compute);
  part("exposed_communication", &TimeBreakdown::exposed_communication);
  part("offload_stall", &TimeBreakdown::offload_stall);
  part("bubble", &TimeBreakdown::bubble);
  part("optimizer", &TimeBreakdown::optimizer);
}

}  // namespace

bool has_numbers(const RunResult& run) { return run.outcome == Outcome::ok || run.steps > 0; }

std::vector<MetricDelta> compare(const RunResult& a, const RunResult& b) {
  Deltas deltas(has_numbers(a), has_numbers(b));
  deltas.add_failed(a.outcome != Outcome::ok, b.outcome != Outcome::ok);
  if (!a.loss.empty() && !b.loss.empty()) {
    deltas.add("final_loss", a.loss.back(), b.loss.back(), Worse::more);
  }
  add_times(deltas, a, b);
  deltas.add_peak("peak_device_bytes", a.peak_device, b.peak_device);
  deltas.add_peak("peak_host_bytes", a.peak_host, b.peak_host);
  deltas.add_peak("peak_nvme_bytes", a.peak_nvme, b.peak_nvme);
  deltas.add("reserved_device_bytes", static_cast<double>(a.reserved_device),
             static_cast<double>(b.reserved_device), Worse::more);
  deltas.add("wire_bytes_per_step", static_cast<double>(a.wire_bytes_per_step),
             static_cast<double>(b.wire_bytes_per_step), Worse::more);
  deltas.add("skipped_steps", static_cast<double>(a.skipped_steps),
             static_cast<double>(b.skipped_steps), Worse::informative);
  return std::move(deltas).sorted();
}

std::vector<MetricDelta> regressions(std::span<const MetricDelta> deltas, double threshold) {
  std::vector<MetricDelta> worse;
  for (const MetricDelta& delta : deltas) {
    const bool more = delta.worse == Worse::more && delta.relative > threshold;
    const bool less = delta.worse == Worse::less && -delta.relative > threshold;
    if (more || less) worse.push_back(delta);
  }
  return worse;
}

double parse_threshold(std::string_view text) {
  const bool percent = !text.empty() && text.back() == '%';
  const std::string_view number = percent ? text.substr(0, text.size() - 1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(value) ||
      value < 0) {
    throw Error(ErrorCode::usage,
                "threshold: \"" + std::string(text) + "\" is not a share such as 5% or 0.05");
  }
  return percent ? value / 100 : value;
}

}  // namespace zl
