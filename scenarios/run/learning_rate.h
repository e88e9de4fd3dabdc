// What a run whose learning rate grows from step to step says of the rate to train with.
// Ownership: values. Threads: any, one at a time.
#pragma once

#include <optional>
#include <vector>

namespace zl {

// The curve of a learning-rate finder (Smith 2015, arXiv:1506.01186, section 3.3), taken step by
// step. The loss is smoothed by an exponential mean, corrected for its beginning by 1 - beta^n
// after n steps.
class LearningRateCurve {
 public:
  void take(double lr, double loss);

  // The smoothed loss is not finite, or above four times its lowest: further steps say nothing.
  bool has_diverged() const { return diverged_; }
  const std::vector<double>& rates() const { return rates_; }
  const std::vector<double>& losses() const { return losses_; }
  const std::vector<double>& smoothed() const { return smoothed_; }

  struct Suggestion {
    double steepest = 0;       // where the smoothed loss falls fastest per factor of the rate
    double below_minimum = 0;  // a tenth of the rate of the lowest smoothed loss
  };
  // Without the first ten steps and the last, which are noise; none of a curve that falls nowhere.
  std::optional<Suggestion> suggestion() const;

 private:
  double mean_ = 0, weight_ = 1;  // weight_: beta^n
  bool diverged_ = false;
  std::vector<double> rates_, losses_, smoothed_;
};

}  // namespace zl
