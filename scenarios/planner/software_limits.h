// What the software that is to run a plan can be told to do: --software limits a search to that.
// Ownership: refers to the space. Threads: immutable.
#pragma once

#include <optional>
#include <string>

#include "core/model/model_config.h"
#include "simulator/cluster/software_abilities.h"
#include "simulator/planner/plan_space.h"

namespace zl {

// Whether it keeps attention alone of blocks that it recomputes, which is no axis of a search
// otherwise: others' selective recomputation is close to it. Of an empty name: no.
bool recomputes_products(const std::string& software);

// Whether its pipelines may count embedding and head as a layer each. Of an empty name: yes.
bool counts_ends(const std::string& software);

class SoftwareLimits {
 public:
  // software: a profile's name or file; empty, or one that does not say what it can do: no limits.
  SoftwareLimits(const std::string& software, const ModelConfig& model,
                 const sim::PlanSpace& space);

  bool any() const { return abilities_.has_value(); }
  // Of a canonical point.
  bool allow(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;

 private:
  bool has_mesh(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  bool has_state(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  bool has_pipeline(const sim::PlanPoint& point) const;

  const ModelConfig& model_;
  const sim::PlanSpace& space_;
  std::optional<sim::SoftwareAbilities> abilities_;  // none: all
};

}  // namespace zl
