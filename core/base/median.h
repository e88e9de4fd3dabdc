// The middle of some values.
// Ownership: values. Threads: pure function.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace zl {

// Of an even number the mean of the two in the middle. Of none there is no median.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace zl
