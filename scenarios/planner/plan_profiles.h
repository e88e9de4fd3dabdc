// The profiles that a search needs, each recorded once: short models under the strategy's own
// program.
// Ownership: a PlanProfiles owns them; it refers to what it was made of. Threads: profiles are made
// side by side by prepare(), which one thread calls; free to read from any afterwards.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/files/scenario.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/planner/closed_form.h"
#include "simulator/planner/plan_space.h"

namespace zl {

// What a profile depends on: everything of a point but how long the pipeline is.
struct ProfileKey {
  std::int64_t tensor = 1, data = 1, replicas = 1, micro_batch = 1, micro_batches = 1;
  bool sequence_parallel = false, is_staged = false, splits_backward = false;
  bool has_whole_backwards = false;  // beside those in halves
  std::uint16_t state = 0, recompute = 0;

  auto operator<=>(const ProfileKey&) const = default;  // NOLINT: its comparison with 0
};

class PlanProfiles {
 public:
  PlanProfiles(const Scenario& scenario, const sim::ClusterSpec& cluster,
               const sim::PlanSpace& space)
      : scenario_(scenario), cluster_(cluster), space_(space) {}

  ProfileKey key_of(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  // Makes those that are missing of the points.
  void prepare(const std::vector<ProfileKey>& keys);
  void prepare_forms(const std::vector<std::pair<sim::PlanPoint, std::int64_t>>& points);
  // Prepared ones only. Null: the configuration cannot be recorded.
  const sim::StageProfiles* find(const ProfileKey& key) const;
  // Of a prepared point.
  std::optional<sim::ClosedForm> closed_form(const sim::PlanPoint& point,
                                             const sim::PlanSpace::Division& division) const;
  // Prepared ones only; null: the point has no pipeline.
  const sim::PipelineForm* form_of(const sim::PlanPoint& point,
                                   const sim::PlanSpace::Division& division) const;
  std::int64_t count() const { return static_cast<std::int64_t>(profiles_.size()); }

 private:
  struct FormKey {
    std::int64_t pipeline = 1, chunks = 1, micro_batches = 1;
    PipelineKind schedule{};
    auto operator<=>(const FormKey&) const = default;  // NOLINT: likewise
  };
  struct Form {
    sim::PipelineForm form;
    std::vector<std::int64_t> layers;
  };
  FormKey form_key(const sim::PlanPoint& point, std::int64_t micro_batches) const;
  sim::StageProfiles make(const ProfileKey& key) const;
  sim::StageProfiles record(const ProfileKey& key) const;

  const Scenario& scenario_;
  const sim::ClusterSpec& cluster_;
  const sim::PlanSpace& space_;
  std::map<ProfileKey, std::unique_ptr<const sim::StageProfiles>> profiles_;
  std::map<FormKey, std::unique_ptr<const Form>> forms_;
};

}  // namespace zl
