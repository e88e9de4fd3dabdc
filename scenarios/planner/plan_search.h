// The search of a plan: bounds, then closed forms, then recordings, each of what the one before
// leaves.
// Ownership: a PlanSearch owns what it finds; it refers to the request. Threads: used by one
// thread, which uses all cores.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "scenarios/planner/judged_plan.h"

namespace zl {

class PlanSearch {
 public:
  PlanSearch(const PlanRequest& request, const PlanHooks& hooks, sim::PlanSpace space);

  // `known`: a plan that some other search found, to be held against these.
  Plans find(std::optional<Plan> known = std::nullopt);

 private:
  using Judged = JudgedPlan;

  bool is_cancelled() const { return hooks_.cancelled != nullptr && *hooks_.cancelled; }
  void report(std::int64_t done, std::size_t of, const char* what) const;
  std::size_t wanted() const;
  std::int64_t worst_kept() const;
  double value_of(const RunResult& result) const;
  double doubt(const Judged& each) const;
  double foreseen_value(const Judged& each) const;

  std::vector<Judged> judge(std::span<const PlanCandidate> some);
  std::optional<Judged> judge_one(FittingCandidate each) const;
  bool is_automatic(const PlanCandidate& each) const;
  std::uint64_t number_of_twin(const sim::PlanPoint& point) const;
  bool is_twin(const sim::PlanPoint& point) const;
  bool may_have_twin(const sim::PlanPoint& point) const;
  bool has_better_twin(const sim::PlanPoint& point) const;
  std::vector<PlanCandidate> next_to_judge(std::size_t& begin);
  std::vector<PlanCandidate> still_good(const std::vector<PlanCandidate>& some);
  void keep(const Judged& judged);
  void judge_all();
  ImportedStrategy named(const PlanCandidate& each, const std::vector<std::int64_t>& blocks) const;
  std::optional<Plan> record(const Judged& judged) const;
  std::optional<Plan> record_one(const Judged& judged) const;
  void record_best();
  void show_so_far() const;
  void add_known(std::optional<Plan> known);
  std::string shortage();

  const PlanRequest& request_;
  const PlanHooks& hooks_;
  const Scenario& scenario_;
  const sim::ClusterSpec cluster_;
  const std::int64_t budget_;
  const sim::PlanSpace space_;
  PlanProfiles profiles_;
  PlanBounder bounder_;
  const PlanMemory memory_;
  PlanCandidates candidates_;
  std::vector<PlanCandidate> waiting_;               // for what is found of their twins
  std::vector<Judged> kept_;                         // the best by their closed forms
  std::unordered_set<std::uint64_t> fitting_twins_;  // that fit with the optimizer's state sharded
  Plans plans_;
};

}  // namespace zl
