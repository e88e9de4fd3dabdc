// What a person rules out of a plan: "tensor<=8,zero=1".
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/planner/plan_space.h"

namespace zl {

struct PlanLimit {
  enum class Relation : std::uint8_t { equal, at_most, at_least };
  std::string key;
  Relation relation = Relation::equal;
  std::string value;
};
using PlanLimits = std::vector<PlanLimit>;

// Throws Error{usage} naming an unknown key with the nearest one, a relation that is none, and a
// value that the key does not take.
PlanLimits parse_limits(std::string_view text);
std::string limits_text(const PlanLimits& limits);  // as it is parsed

// Takes out of the lists what a limit excludes. Limits of the data-parallel ranks stay: a
// combination has them. Throws Error{invalid} naming the limit that leaves nothing.
void apply_limits(const PlanLimits& limits, sim::PlanSpace& space);

// What the lists cannot say: `data`, `shard`.
bool is_within(const PlanLimits& limits, const sim::PlanSpace& space, const sim::PlanPoint& point,
               const sim::PlanSpace::Division& division);

}  // namespace zl
