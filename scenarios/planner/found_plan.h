// A plan as the search shows it.
// Ownership: a value. Threads: value type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/train/run_result.h"
#include "scenarios/deepspeed/imported_strategy.h"
#include "simulator/planner/closed_form.h"

namespace zl {

struct Plan {
  ImportedStrategy strategy;
  RunResult result;                       // recorded within the memory, and priced
  std::vector<std::int64_t> layers = {};  // of each stage, virtual ones as well
  sim::ClosedForm closed_form;            // what the search went by
  bool equals_best = false;  // neither is known to be faster: the bar of their ratio holds 1
  std::string why;           // beside the next one; empty: there is none
};

}  // namespace zl
