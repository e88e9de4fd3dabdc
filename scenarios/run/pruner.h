// Which of several trainings is not worth its end.
// Ownership: owns what the trials said. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace zl {

// Optuna's median rule: a trial ends where the lowest validation loss it has had is above the
// median of what the trials before it had at that step. The first `startup` trials run to their
// end.
class MedianPruner {
 public:
  explicit MedianPruner(std::int64_t startup) : startup_(startup) {}

  void begin();
  // Of the trial under way; whether it should end here.
  bool take(std::int64_t step, double loss);

 private:
  std::int64_t startup_, begun_ = 0;
  double lowest_ = 0;
  bool said_ = false;  // whether the trial under way has said anything
  std::map<std::int64_t, std::vector<double>> earlier_;  // by step
  std::map<std::int64_t, double> now_;
};

}  // namespace zl
