// "rope_scaling" of models as JSON, with the names of transformers.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "core/ops/rope_scaling.h"
#include "simulator/json/reading.h"

namespace zl {

// What a file need not say because it follows from the rest of it; 0: it must.
struct RopeDefaults {
  double factor = 0, original = 0;
};

// The kind by "rope_type" or "type"; neither: llama3, as model files of zerolab have it. Throws
// Error{invalid} naming the key.
RopeScaling rope_scaling_from_json(const Json& object, const std::string& where,
                                   const RopeDefaults& defaults = {});

// The fields of the kind; rope_scaling_from_json gives the same scaling back.
Json rope_scaling_to_json(const RopeScaling& scaling);

}  // namespace zl
