#include "core/ops/rope_table.h"

#include <algorithm>
#include <cmath>

namespace zl {
namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

// Frequencies whose wave is longer than original / low_freq are divided by factor, those below
// original / high_freq stay, between them a blend of both.
double llama3(const RopeScaling& scaling, double frequency) {
  if (scaling.factor == 1) return frequency;
  const double waves = scaling.original * frequency / kTwoPi;
  if (waves < scaling.low_freq) return frequency / scaling.factor;
  if (waves > scaling.high_freq) return frequency;
  const double kept = (waves - scaling.low_freq) / (scaling.high_freq - scaling.low_freq);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

// The pairs between which yarn blends: those that turn beta_fast and beta_slow times.
struct YarnRamp {
  double begin = 0, end = 0;

  YarnRamp(const RopeScaling& scaling, double theta, double width) {
    const auto pair_of = [&](double turns) {
      return width * std::log(scaling.original / (turns * kTwoPi)) / (2 * std::log(theta));
    };
    begin = pair_of(scaling.beta_fast);
    end = pair_of(scaling.beta_slow);
    if (scaling.truncate) begin = std::floor(begin), end = std::ceil(end);
    begin = std::max(begin, 0.0);
    end = std::min(end, width - 1);
    if (begin == end) end += 0.001;  // as transformers: no division by 0
  }
  double at(double pair) const { return std::clamp((pair - begin) / (end - begin), 0.0, 1.0); }
};

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

double multiplier(const RopeScaling& scaling) {
  const bool yarn = scaling.kind == RopeKind::yarn;
  if (!yarn && scaling.kind != RopeKind::longrope) return 1;
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  if (yarn && scaling.mscale > 0 && scaling.mscale_all_dim > 0) {
    return yarn_scale(scaling.factor, scaling.mscale) /
           yarn_scale(scaling.factor, scaling.mscale_all_dim);
  }
  if (yarn) return yarn_scale(scaling.factor, 1);
  return scaling.factor <= 1 ? 1
                             : std::sqrt(1 + std::log(scaling.factor) / std::log(scaling.original));
}

// The base of all frequencies; `dynamic` stretches it ("NTK-aware", bloc97 2023).
double base_of(double theta, double width, const RopeScaling& scaling, double length) {
  if (scaling.kind != RopeKind::dynamic || width <= 2) return theta;
  const double longer = std::max(length, scaling.original) / scaling.original;
  const double stretch = scaling.factor * longer - (scaling.factor - 1);
  return theta * std::pow(stretch, width / (width - 2));
}

}  // namespace

RopeTable rope_table(double theta, std::int64_t width, const RopeScaling& scaling,
                     std::int64_t length) {
  const auto real_width = static_cast<double>(width);
  const double base = base_of(theta, real_width, scaling, static_cast<double>(length));
  const YarnRamp ramp(scaling, theta, real_width);
  const std::vector<double>& divisors =
      static_cast<double>(length) > scaling.original ? scaling.long_factors : scaling.short_factors;
  RopeTable table;
  table.multiplier = multiplier(scaling);
  const std::int64_t pairs = width / 2;
  for (std::int64_t j = 0; j < pairs; ++j) {
    const double exponent = -static_cast<double>(j) / static_cast<double>(pairs);
    double frequency = std::pow(base, exponent);
    if (scaling.kind == RopeKind::linear) frequency /= scaling.factor;
    if (scaling.kind == RopeKind::llama3) frequency = llama3(scaling, frequency);
    if (scaling.kind == RopeKind::longrope) frequency /= divisors.at(static_cast<std::size_t>(j));
    if (scaling.kind == RopeKind::yarn) {
      const double divided = ramp.at(static_cast<double>(j));
      frequency = frequency * (1 - divided) + frequency / scaling.factor * divided;
    }
    table.frequencies.push_back(frequency);
  }
  return table;
}

std::int64_t rope_table_key(const RopeScaling& scaling, std::int64_t length) {
  const bool beyond = static_cast<double>(length) > scaling.original;
  if (!beyond) return 0;
  if (scaling.kind == RopeKind::dynamic) return length;
  return scaling.kind == RopeKind::longrope ? 1 : 0;
}

}  // namespace zl
