#include "scenarios/planner/plan_candidates.h"

#include <algorithm>
#include <optional>

#include "core/threads/all_cores.h"
#include "scenarios/planner/refuse_batch.h"
#include "scenarios/planner/software_limits.h"

namespace zl {
namespace {

// Bounds that one core works out at a time.
constexpr std::size_t kAtOnce = 4096;

template <class T>
std::uint16_t count_of(const std::vector<T>& values) {
  return static_cast<std::uint16_t>(values.size());
}

// Every combination that can run, the choices in the order of PlanSpace::at.
class PlanLister {
 public:
  PlanLister(const PlanRequest& request, const sim::PlanSpace& space)
      : request_(request),
        space_(space),
        rules_(request.scenario.model, space, request.scenario.run.sequence_length),
        software_(request.scenario.run.software, request.scenario.model, space) {}

  std::vector<PlanCandidate> list() {
    sim::PlanPoint point;
    for (point.tensor = 0; point.tensor < count_of(space_.tensor); ++point.tensor) {
      for (point.sequence_parallel = 0;
           point.sequence_parallel < count_of(space_.sequence_parallel);
           ++point.sequence_parallel) {
        for (point.pipeline = 0; point.pipeline < count_of(space_.pipeline); ++point.pipeline) {
          const std::int64_t model = space_.tensor[point.tensor] * space_.pipeline[point.pipeline];
          if (space_.ranks % model == 0) list_schedules(point);
        }
      }
    }
    return std::move(found_);
  }

 private:
  void list_schedules(sim::PlanPoint point) {
    for (point.chunks = 0; point.chunks < count_of(space_.chunks); ++point.chunks) {
      for (point.schedule = 0; point.schedule < count_of(space_.schedules); ++point.schedule) {
        if (!sim::is_canonical(space_, point)) continue;
        for (point.micro_batch = 0; point.micro_batch < count_of(space_.micro_batch);
             ++point.micro_batch) {
          list_states(point);
        }
      }
    }
  }

  void list_states(sim::PlanPoint point) {
    for (point.replicas = 0; point.replicas < count_of(space_.replicas); ++point.replicas) {
      const auto division = space_.division(point);
      if (!division || !is_within(request_.limits, space_, point, *division)) continue;
      for (point.state = 0; point.state < count_of(space_.states); ++point.state) {
        for (point.recompute = 0; point.recompute < count_of(space_.recompute); ++point.recompute) {
          if (software_.allow(point, *division) && rules_.allows(point, *division)) {
            found_.push_back({point, *division, {}});
          }
        }
      }
    }
  }

  const PlanRequest& request_;
  const sim::PlanSpace& space_;
  sim::PlanRules rules_;
  const SoftwareLimits software_;
  std::vector<PlanCandidate> found_;
};

// What a rank computes at least is that of a plain data-parallel run of the same micro-batch.
ProfileKey plain_key(const sim::PlanSpace& space, const sim::PlanPoint& point,
                     std::uint16_t recompute) {
  return {.tensor = space.tensor[point.tensor],
          .micro_batch = space.micro_batch[point.micro_batch],
          .micro_batches = 3,
          .sequence_parallel = space.sequence_parallel[point.sequence_parallel],
          .recompute = recompute};
}

}  // namespace

bool fits(const sim::ClosedForm& form, std::int64_t budget) {
  return budget == 0 || form.memory <= budget;
}

void PlanBounder::prepare_works(const std::vector<PlanCandidate>& candidates) {
  works_.resize(space_.tensor.size() * space_.sequence_parallel.size() * space_.micro_batch.size() *
                profiles_.recomputations().size());
  std::vector<bool> needed(works_.size());
  std::vector<ProfileKey> keys;
  std::vector<std::size_t> numbers;
  const auto need = [&](const sim::PlanPoint& point, std::uint16_t recompute) {
    const std::size_t number = number_of(point, recompute);
    if (needed[number]) return;
    needed[number] = true;
    numbers.push_back(number);
    keys.push_back(plain_key(space_, point, recompute));
  };
  for (const PlanCandidate& each : candidates) {
    if (!space_.mixes(each.point)) {
      need(each.point, each.point.recompute);
      continue;
    }
    for (const std::uint16_t part : profiles_.parts_of_mix()) need(each.point, part);
  }
  profiles_.prepare(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    works_[numbers[i]] =
        sim::layer_work(*profiles_.find(keys[i]), profiles_.group_of(keys[i].recompute));
  }
}

void PlanBounder::bound(std::vector<PlanCandidate>& candidates, std::int64_t budget) {
  prepare_works(candidates);
  on_all_cores((candidates.size() + kAtOnce - 1) / kAtOnce, [&](std::size_t part) {
    const std::size_t end = std::min(candidates.size(), (part + 1) * kAtOnce);
    for (std::size_t i = part * kAtOnce; i < end; ++i) {
      bound_one(candidates[i], candidates[i].by_software ? 0 : budget);
    }
  });
}

// Recomputation of some blocks: no fewer than the bound of the memory says.
void PlanBounder::count_blocks(PlanCandidate& each, std::int64_t budget) const {
  const RecomputeConfig& config = space_.recompute[each.point.recompute];
  if (config.mode == RecomputeMode::first_blocks) {
    each.blocks = config.blocks_of(0);
    return;
  }
  const std::int64_t layers = fewest_layers(each.point);
  // Of a pipeline's first stage perhaps none, or all.
  const bool of_ranks = has_own_blocks(each.point);
  std::int64_t low = of_ranks ? 0 : 1, high = of_ranks ? layers : layers - 1;
  while (low < high && budget > 0) {
    each.blocks = (low + high) / 2;
    if (bounds_.of(each.point, each.division, works_of(each, layers)).memory <= budget) {
      high = each.blocks;
    } else {
      low = each.blocks + 1;
    }
  }
  each.blocks = low;
}

void PlanBounder::bound_one(PlanCandidate& each, std::int64_t budget) const {
  const std::int64_t layers = fewest_layers(each.point);
  const auto least = [&](std::int64_t among) {
    return bounds_.of(each.point, each.division, works_of(each, among));
  };
  if (space_.mixes(each.point)) count_blocks(each, budget);
  each.least.memory = least(layers).memory;
  each.least.time = least(layers + 1).time;
}

std::int64_t PlanBounder::time_of(const PlanCandidate& each, std::int64_t budget) const {
  const auto [form, left_out] = profiles_.form_of(each.point, each.division);
  if (form == nullptr) return each.least.time;
  sim::StageWorks works = works_of(each, fewest_layers(each.point) + 1);
  if (budget > 0 && !each.by_software && decides_by_rank(each.point)) {
    works.each = works_of_stages(each, *form, budget);
  }
  return std::max(each.least.time,
                  bounds_.time_by(*form, each.point, each.division, works, left_out));
}

// Of a stage; the first ones may have one more.
std::int64_t PlanBounder::fewest_layers(const sim::PlanPoint& point) const {
  return layers_ / (space_.pipeline[point.pipeline] * space_.chunks[point.chunks]);
}

// Whether each rank of a pipeline recomputes as few blocks as fit.
bool PlanBounder::decides_by_rank(const sim::PlanPoint& point) const {
  return has_own_blocks(point) &&
         space_.recompute[point.recompute].mode == RecomputeMode::automatic;
}

// Of automatic recomputation, by what the ranks hold at least.
std::vector<sim::LayerWork> PlanBounder::works_of_stages(const PlanCandidate& each,
                                                         const sim::PipelineForm& form,
                                                         std::int64_t budget) const {
  const auto [plain, full] = profiles_.parts_of_mix();
  const sim::LayerWork &kept = works_[number_of(each.point, plain)],
                       &again = works_[number_of(each.point, full)];
  const std::vector<std::int64_t> blocks =
      bounds_.fewest_blocks(form, each.point, each.division, kept, again, budget);
  const std::vector<std::int64_t> layers = even_split(layers_, static_cast<int>(blocks.size()));
  std::vector<sim::LayerWork> works;
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    const double share = static_cast<double>(blocks[stage]) / static_cast<double>(layers[stage]);
    works.push_back(sim::mixed_work(kept, again, share));
  }
  return works;
}

// Whether stages may recompute other numbers of blocks than the first.
bool PlanBounder::has_own_blocks(const sim::PlanPoint& point) const {
  const RecomputeConfig& config = space_.recompute[point.recompute];
  if (space_.pipeline[point.pipeline] == 1) return false;
  return config.mode == RecomputeMode::automatic ? space_.recomputes_by_stage
                                                 : !config.stage_blocks.empty();
}

// Of recomputation of some blocks with those of the first stage among so many layers.
sim::StageWorks PlanBounder::works_of(const PlanCandidate& each, std::int64_t layers) const {
  const auto of = [&](std::uint16_t recompute) -> const sim::LayerWork& {
    return works_[number_of(each.point, recompute)];
  };
  if (!space_.mixes(each.point)) return sim::StageWorks(of(each.point.recompute));
  const auto [kept, again] = profiles_.parts_of_mix();
  const double share =
      std::min(1.0, static_cast<double>(each.blocks) / static_cast<double>(layers));
  sim::StageWorks works(sim::mixed_work(of(kept), of(again), share));
  if (!has_own_blocks(each.point)) return works;
  works.others = of(kept);
  works.least = sim::mixed_work(of(kept), of(again), 1);
  return works;
}

std::size_t PlanBounder::number_of(const sim::PlanPoint& point, std::uint16_t recompute) const {
  std::size_t number = point.tensor;
  number = number * space_.sequence_parallel.size() + point.sequence_parallel;
  number = number * space_.micro_batch.size() + point.micro_batch;
  return number * profiles_.recomputations().size() + recompute;
}

PlanCandidates plan_candidates(const PlanRequest& request, const sim::PlanSpace& space,
                               std::int64_t budget, const PlanMemory& memory,
                               PlanBounder& bounder) {
  PlanCandidates found;
  found.all = PlanLister(request, space).list();
  for (PlanCandidate& each : found.all) each.by_software = memory.knows(each.point);
  found.runnable = static_cast<std::int64_t>(found.all.size());
  if (found.all.empty()) refuse_batch(request, space);
  bounder.bound(found.all, budget);
  for (PlanCandidate& each : found.all) {
    if (each.by_software) each.least.memory = memory.least(each.point, each.division);
  }
  if (budget > 0) {
    const auto fits = [&](const PlanCandidate& each) {
      return each.by_software ? memory.could_fit(each.least.memory) : each.least.memory <= budget;
    };
    const auto large = std::stable_partition(found.all.begin(), found.all.end(), fits);
    found.too_large.assign(large, found.all.end());
    found.all.erase(large, found.all.end());
  }
  std::ranges::stable_sort(found.all, {}, [&](const PlanCandidate& each) {
    return goal_value(request.goal, each.least);
  });
  std::ranges::stable_sort(found.too_large, {},
                           [](const PlanCandidate& each) { return each.least.memory; });
  return found;
}

std::vector<FittingCandidate> fitting(std::span<const PlanCandidate> some,
                                      const PlanMemory& memory) {
  std::vector<std::optional<FittingCandidate>> judged;
  for (const PlanCandidate& each : some) judged.emplace_back(FittingCandidate{each});
  on_all_cores(some.size(), [&](std::size_t i) {
    if (!some[i].by_software) return;
    auto held = memory.fitting(some[i].point);
    if (!held) return judged[i].reset();
    judged[i]->blocks = std::move(held->blocks);
    judged[i]->candidate.least.memory = held->in_use;
  });
  std::vector<FittingCandidate> all;
  for (std::optional<FittingCandidate>& each : judged) {
    if (each) all.push_back(std::move(*each));
  }
  return all;
}

}  // namespace zl
