// A list of ZeRO stages in a profile.
// Ownership: values. Threads: pure functions.
#pragma once

#include <vector>

namespace zl {
class JsonObject;
}

namespace zl::sim {

// Throws Error{invalid} naming the key and what is no stage.
std::vector<int> zero_stages(JsonObject& object, const char* key);

}  // namespace zl::sim
