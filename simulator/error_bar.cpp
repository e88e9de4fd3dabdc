#include "simulator/error_bar.h"

#include <algorithm>
#include <cmath>

namespace zl::sim {

double bar_of(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  std::ranges::sort(errors);
  const std::size_t outside = errors.size() / 10;
  return errors[errors.size() - 1 - outside] / kNineInTen;
}

}  // namespace zl::sim
