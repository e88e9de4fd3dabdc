#include "simulator/planner/fewest_blocks.h"

#include <algorithm>
#include <numeric>

#include "simulator/planner/rank_memory.h"

namespace zl::sim {
namespace {

// More recomputed blocks never need more memory: the fewest of `most` that fit, by bisection.
template <class FitsWith>
std::optional<std::int64_t> fewest(std::int64_t most, const FitsWith& fits) {
  if (fits(0)) return 0;
  if (!fits(most)) return std::nullopt;
  std::int64_t low = 1, high = most;
  while (low < high) {
    const std::int64_t middle = (low + high) / 2;
    if (fits(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The stages of one rank.
class RankBlocks {
 public:
  RankBlocks(const MixedProfiles& mixed, const PipelineForm::Rank& rank,
             const std::vector<std::int64_t>& layers, bool by_stage)
      : mixed_(mixed), rank_(rank), layers_(layers), by_stage_(by_stage), stages_(layers.size()) {}

  // Of a number by which the rank's blocks are said: all together, or of each stage.
  std::optional<std::int64_t> fewest_within(std::int64_t budget) {
    std::int64_t most = 0;
    for (const int stage : rank_.stages) {
      most = by_stage_ ? most + layers_[stage] : std::max(most, layers_[stage]);
    }
    return fewest(most, [&](std::int64_t number) { return peak_with(number) <= budget; });
  }

  void spread(std::int64_t number, std::vector<std::int64_t>& blocks) const {
    for (const int stage : rank_.stages) {
      blocks[stage] = std::min(number, layers_[stage]);
      if (by_stage_) number -= blocks[stage];
    }
  }

 private:
  std::int64_t peak_with(std::int64_t number) {
    MixedProfiles mixed = mixed_;
    mixed.blocks.assign(layers_.size(), 0);
    spread(number, mixed.blocks);
    for (const int each : rank_.stages) {
      const auto stage = static_cast<std::size_t>(each);
      stages_[stage] = passes_of(mixed.of(stage, layers_[stage]), place_of(stage, layers_.size()),
                                 layers_[stage], rank_.stages.size() == 1);
    }
    return RankMemory(mixed_.all, rank_, stages_, layers_).peak();
  }

  const MixedProfiles& mixed_;
  const PipelineForm::Rank& rank_;
  const std::vector<std::int64_t>& layers_;
  const bool by_stage_;
  std::vector<StagePasses> stages_;
};

}  // namespace

FewestBlocks fewest_blocks(const MixedProfiles& mixed, std::int64_t layers,
                           std::int64_t micro_batches, std::int64_t budget) {
  const auto number = fewest(layers, [&](std::int64_t blocks) {
    return closed_form({mixed.all, mixed.again, {blocks}}, layers, micro_batches).memory <= budget;
  });
  if (!number) return std::nullopt;
  return std::vector{*number};
}

FewestBlocks fewest_blocks(const MixedProfiles& mixed, const PipelineForm& form,
                           const std::vector<std::int64_t>& layers, std::int64_t budget,
                           bool by_stage) {
  std::vector<std::int64_t> blocks(layers.size(), 0);
  std::int64_t most = 0;
  for (const PipelineForm::Rank& rank : form.ranks()) {
    RankBlocks own(mixed, rank, layers, by_stage);
    const auto number = own.fewest_within(budget);
    if (!number) return std::nullopt;
    own.spread(*number, blocks);
    most = std::max(most, *number);
  }
  if (by_stage) return blocks;
  std::ranges::transform(layers, blocks.begin(),
                         [most](std::int64_t each) { return std::min(most, each); });
  return blocks;
}

}  // namespace zl::sim
