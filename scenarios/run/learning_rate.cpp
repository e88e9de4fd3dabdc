#include "scenarios/run/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace zl {
namespace {

constexpr double kBeta = 0.98, kDiverged = 4;
constexpr std::size_t kNoise = 10;  // first steps

}  // namespace

void LearningRateCurve::take(double lr, double loss) {
  mean_ = kBeta * mean_ + (1 - kBeta) * loss;
  weight_ *= kBeta;
  const double smoothed = mean_ / (1 - weight_);
  rates_.push_back(lr);
  losses_.push_back(loss);
  smoothed_.push_back(smoothed);
  const double lowest = *std::min_element(smoothed_.begin(), smoothed_.end());
  diverged_ = !std::isfinite(smoothed) || smoothed > kDiverged * lowest;
}

std::optional<LearningRateCurve::Suggestion> LearningRateCurve::suggestion() const {
  std::optional<Suggestion> found;
  double steepest = 0, lowest = INFINITY;
  for (std::size_t i = kNoise + 1; i + 2 < rates_.size(); ++i) {
    const double slope =
        (smoothed_[i + 1] - smoothed_[i - 1]) / (std::log(rates_[i + 1]) - std::log(rates_[i - 1]));
    if (!std::isfinite(slope)) break;
    if (slope < steepest) {
      steepest = slope;
      if (!found) found.emplace();
      found->steepest = rates_[i];
    }
    if (found && smoothed_[i] < lowest) {
      lowest = smoothed_[i];
      found->below_minimum = rates_[i] / 10;
    }
  }
  return found;
}

}  // namespace zl
