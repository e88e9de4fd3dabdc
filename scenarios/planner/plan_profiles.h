// The profiles that a search needs, each recorded once: short models under the strategy's own
// program.
// Ownership: a PlanProfiles owns them; it refers to what it was made of. Threads: profiles are made
// side by side by prepare(), which one thread calls; free to read from any afterwards.
#pragma once

#include <array>
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

using DividedPoint = std::pair<sim::PlanPoint, sim::PlanSpace::Division>;

class PlanProfiles {
 public:
  PlanProfiles(const Scenario& scenario, const sim::ClusterSpec& cluster,
               const sim::PlanSpace& space);

  // What closed_form() of the points needs and is missing.
  void prepare(const std::vector<DividedPoint>& points);
  // Likewise single profiles, and the forms of pipelines alone.
  void prepare(const std::vector<ProfileKey>& keys);
  void prepare_forms(const std::vector<DividedPoint>& points);
  // Prepared ones only. Null: the configuration cannot be recorded.
  const sim::StageProfiles* find(const ProfileKey& key) const;
  // Of a prepared point. blocks: of each stage, of automatic recomputation; empty: none.
  std::optional<sim::ClosedForm> closed_form(const sim::PlanPoint& point,
                                             const sim::PlanSpace::Division& division,
                                             const std::vector<std::int64_t>& blocks = {}) const;
  // The fewest blocks of each stage whose recomputation makes a prepared point fit, of automatic
  // recomputation. Nothing: it cannot, or is another of the space's choices: none or all of them.
  std::optional<std::vector<std::int64_t>> fewest_blocks(const sim::PlanPoint& point,
                                                         const sim::PlanSpace::Division& division,
                                                         std::int64_t budget) const;
  // Those of ProfileKey: the space's, and what automatic ones are made of.
  const std::vector<RecomputeConfig>& recomputations() const { return recomputations_; }
  // Of which recomputation of first blocks is made: blocks as without any, and those recomputed.
  std::array<std::uint16_t, 2> parts_of_mix() const;
  // Layers that are recomputed together.
  std::int64_t group_of(std::uint16_t recompute) const;
  // Prepared ones only; null: the point has no pipeline. left_out: as sim::PipelineCosts.
  struct FormOf {
    const sim::PipelineForm* form = nullptr;
    std::int64_t left_out = 0;
  };
  FormOf form_of(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  std::int64_t count() const { return static_cast<std::int64_t>(profiles_.size()); }

 private:
  struct FormKey {
    std::int64_t pipeline = 1, chunks = 1, micro_batches = 1;  // the form's own
    PipelineKind schedule{};
    auto operator<=>(const FormKey&) const = default;  // NOLINT: likewise
  };
  struct Form {
    sim::PipelineForm form;
    std::vector<std::int64_t> layers;
  };
  ProfileKey key_of(const sim::PlanPoint& point, const sim::PlanSpace::Division& division,
                    std::uint16_t recompute) const;
  sim::SteadyCount steady_count_of(const sim::PlanPoint& point,
                                   const sim::PlanSpace::Division& division) const;
  FormKey form_key(const sim::PlanPoint& point, const sim::PlanSpace::Division& division) const;
  sim::PipelineLinks links_of(const sim::StageProfiles& profiles, std::int64_t pipeline) const;
  std::int64_t stages_of(const sim::PlanPoint& point) const;
  // blocks: as closed_form(). Nothing: not prepared.
  std::optional<sim::MixedProfiles> mixed(const sim::PlanPoint& point,
                                          const sim::PlanSpace::Division& division,
                                          const std::vector<std::int64_t>& blocks) const;
  std::uint16_t number_of(const RecomputeConfig& recompute) const;
  static std::array<ProfileKey, 2> parts_of(ProfileKey key);
  sim::StageProfiles record(const ProfileKey& key) const;

  const Scenario& scenario_;
  const sim::ClusterSpec& cluster_;
  const sim::PlanSpace& space_;
  std::vector<RecomputeConfig> recomputations_;
  std::map<ProfileKey, std::unique_ptr<const sim::StageProfiles>> profiles_;
  std::map<FormKey, std::unique_ptr<const Form>> forms_;
};

}  // namespace zl
