// "rope_scaling" of Llama 3.1 as JSON.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "core/ops/rope_scaling.h"
#include "simulator/json/reading.h"

namespace zl {

// As Hugging Face writes it for "llama3". Throws Error{invalid} naming the key.
RopeScaling rope_scaling_from_json(const Json& object, const std::string& where);

Json rope_scaling_to_json(const RopeScaling& scaling);

}  // namespace zl
