// Figures that tests add to the JSON of their part.
// Ownership: one object per program. Threads: the test's thread.
#pragma once

#include <nlohmann/json.hpp>

namespace zl::gpu {

nlohmann::ordered_json& figures();

}  // namespace zl::gpu
