// The numbers of a software's profile that may be fitted to published runs.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/cluster/software.h"

namespace zl::sim {

// A number of a profile that may be fitted: its key, and the range that public benchmarks leave.
struct FittedNumber {
  const char* key;
  double least, most;
};
const std::vector<FittedNumber>& fitted_numbers();
const FittedNumber& range_of(std::string_view key);           // of fitted_numbers()
double& number_of(Software& software, std::string_view key);  // of fitted_numbers()

// Counted as fitted, but to bytes and not to times.
inline constexpr const char* kFittedReserve = "memory.device.reserve";

// `derived` with all numbers of fitted_numbers() as `base` has them.
Software with_numbers_of(Software derived, const Software& base);

// With the numbers of the fit that left the group out; nothing where no fit did.
std::optional<Software> fitted_without(const Software& software, const std::string& group);

}  // namespace zl::sim
