// The "calibration" block of a cluster file.
// Ownership: values. Threads: pure functions.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "simulator/cluster/coefficients.h"

namespace zl::sim {

// Throws Error{invalid} naming the key, or the op, collective or type it does not know.
Calibration read_calibration(const nlohmann::ordered_json& value, const std::string& where);
nlohmann::ordered_json write_calibration(const Calibration& calibration);

}  // namespace zl::sim
