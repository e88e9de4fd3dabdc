// Why no mesh takes a batch, and which batch one would take.
// Ownership: values. Threads: pure functions.
#pragma once

#include "scenarios/planner/plan_request.h"

namespace zl {

// Of a space of which nothing can run. Throws Error{invalid} naming what stands in the way: the
// limits, the batch with the nearest that can be divided, what the software can be told, or what
// the model can be cut into.
[[noreturn]] void refuse_batch(const PlanRequest& request, const sim::PlanSpace& space);

}  // namespace zl
