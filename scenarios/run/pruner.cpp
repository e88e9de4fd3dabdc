#include "scenarios/run/pruner.h"

#include <algorithm>
#include <cmath>

#include "core/base/median.h"

namespace zl {
void MedianPruner::begin() {
  for (const auto& [step, loss] : now_) earlier_[step].push_back(loss);
  now_.clear();
  said_ = false;
  ++begun_;
}

bool MedianPruner::take(std::int64_t step, double loss) {
  const double said = std::isfinite(loss) ? loss : INFINITY;
  now_[step] = said;
  lowest_ = said_ ? std::min(lowest_, said) : said;
  said_ = true;
  const auto others = earlier_.find(step);
  if (begun_ <= startup_ || others == earlier_.end()) return false;
  return lowest_ > median(others->second);
}

}  // namespace zl
