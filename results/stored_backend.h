// What the backend's name of a stored run says; a run that is being made asks the backend itself
// (BackendCapabilities). Ownership: values. Threads: pure function.
#pragma once

#include <string_view>

namespace zl {

// RunResult::predicted of a run whose backend has this name.
inline bool is_predicting(std::string_view backend) { return backend == "sim"; }

}  // namespace zl
