#include "core/pipeline/pipeline_config.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/base/error.h"

namespace zl {
namespace {

[[noreturn]] void refuse_split(const std::string& what) { throw Error(ErrorCode::invalid, what); }

// The counts of a list are the model's, and each rank has some unit: the first the embedding.
void check_list(std::int64_t layers, std::int64_t stages, const PipelineConfig& config) {
  const std::vector<std::int64_t>& list = config.layers_per_stage;
  const std::int64_t sum = std::accumulate(list.begin(), list.end(), std::int64_t{0});
  if (static_cast<std::int64_t>(list.size()) != stages || sum != layers ||
      *std::ranges::min_element(list) < 0) {
    refuse_split("parallel.layers_per_stage: " + std::to_string(list.size()) + " stages of " +
                 std::to_string(sum) + " layers together; give " + std::to_string(stages) +
                 " numbers that add up to " + std::to_string(layers));
  }
  const Pipeline placed{.kind = config.schedule,
                        .shape = {.ranks = static_cast<int>(config.ranks),
                                  .chunks = static_cast<int>(config.virtual_stages)},
                        .work = {}};
  for (int rank = 0; rank < config.ranks; ++rank) {
    bool has_any = false;
    for (int chunk = 0; chunk < config.virtual_stages; ++chunk) {
      const int stage = placed.stage_of(rank, chunk);
      has_any = has_any || stage == 0 || stage + 1 == stages || list[stage] > 0;
    }
    if (has_any) continue;
    refuse_split("parallel.layers_per_stage: rank " + std::to_string(rank) +
                 " of the pipeline would have nothing; give it a layer, or use fewer ranks");
  }
}

void check_layers(std::int64_t layers, std::int64_t stages, const PipelineConfig& config) {
  if (!config.layers_per_stage.empty()) return check_list(layers, stages, config);
  if (stages > layers) {
    refuse_split("parallel.pipeline: " + std::to_string(config.ranks) + " ranks of " +
                 std::to_string(config.virtual_stages) + " virtual stages make " +
                 std::to_string(stages) + " stages, the model has " + std::to_string(layers) +
                 " layers; use at most " + std::to_string(layers) +
                 " stages, or parallel.layers_per_stage with 0 for some");
  }
}

}  // namespace

std::string placement_text(const PipelineConfig& config) {
  if (config.ranks * config.virtual_stages == 1) return "";
  return std::to_string(config.ranks) + " ranks of " + std::to_string(config.virtual_stages) +
         " stages" + (is_v(config.schedule) ? " on a V" : "");
}

std::vector<std::int64_t> layers_of_stages(const ModelConfig& model, const PipelineConfig& config) {
  const std::int64_t stages = config.ranks * config.virtual_stages;
  check_layers(model.layers, stages, config);
  if (!config.layers_per_stage.empty()) return config.layers_per_stage;
  return split_layers(model, static_cast<int>(stages), config.split);
}

std::vector<UnitRange> split_units(const ModelConfig& model, const PipelineConfig& config) {
  std::vector<UnitRange> units;
  int next = 1;
  for (const std::int64_t count : layers_of_stages(model, config)) {
    units.push_back({next, next + static_cast<int>(count)});
    next = units.back().end;
  }
  units.front().begin = 0;
  units.back().end += 1;
  return units;
}

std::int64_t layers_of(const ModelConfig& model, const UnitRange& units) {
  return std::min<std::int64_t>(units.end, model.layers + 1) - std::max(units.begin, 1);
}

std::vector<bool> units_of_rank(const Pipeline& pipeline, const std::vector<UnitRange>& stages,
                                int rank, int count) {
  std::vector<bool> own(count, false);
  for (int chunk = 0; chunk < pipeline.shape.chunks; ++chunk) {
    const UnitRange& units = stages[pipeline.stage_of(rank, chunk)];
    std::fill(own.begin() + units.begin, own.begin() + units.end, true);
  }
  return own;
}

}  // namespace zl
