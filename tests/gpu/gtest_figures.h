// What tests and their part have in common: figures that tests add to its JSON, and whether sizes
// are toys. Ownership: one object per program. Threads: the test's thread.
#pragma once

#include <nlohmann/json.hpp>

namespace zl::gpu {

nlohmann::ordered_json& figures();
bool& is_tiny();

}  // namespace zl::gpu
