// What the software that is to run a plan can be told to do: --software limits a search to that.
// Ownership: refers to the space. Threads: immutable.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/model_config.h"
#include "simulator/planner/plan_space.h"

namespace zl {

class SoftwareLimits {
 public:
  // software: of the catalogue; empty, this core or somebody's own: no limits.
  SoftwareLimits(const std::string& software, const ModelConfig& model,
                 const sim::PlanSpace& space);

  bool any() const { return abilities_ != nullptr; }
  // Of a canonical point.
  bool allow(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;

  struct Abilities;

 private:
  bool has_mesh(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  bool has_state(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  bool has_pipeline(const sim::PlanPoint& point) const;

  const ModelConfig& model_;
  const sim::PlanSpace& space_;
  const Abilities* abilities_;  // null: all
};

}  // namespace zl
