#include "core/train/strategy.h"

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace zl {
namespace {

constexpr const char* kSecondary = "zero_optimization.zero_hpz_partition_size: ";

}  // namespace

Mesh mesh_of(const Strategy& strategy, int ranks) {
  const std::int64_t pipeline = strategy.pipeline.ranks, tensor = strategy.tensor.ranks;
  const std::int64_t model = pipeline * tensor;  // ranks of one copy of the model
  if (pipeline < 1 || tensor < 1 || ranks % model != 0) {
    const std::int64_t unit = std::max<std::int64_t>(1, model);
    const std::int64_t below = ranks / unit * unit;
    const std::string said = tensor == 1 ? "parallel.pipeline: " + std::to_string(pipeline)
                                         : "parallel: tensor " + std::to_string(tensor) +
                                               " x pipeline " + std::to_string(pipeline);
    throw Error(ErrorCode::invalid,
                said + " does not divide " + std::to_string(ranks) + " ranks; use --ranks " +
                    (below > 0 ? std::to_string(below) + " or " : "") +
                    std::to_string(below + unit) + ", or " +
                    (tensor == 1 ? "a pipeline that divides" : "sizes that divide") + " them");
  }
  const std::int64_t data = ranks / model, replicas = strategy.zero.replicas;
  if (replicas < 1 || data % replicas != 0) {
    throw Error(ErrorCode::invalid, "parallel.replicate: " + std::to_string(replicas) +
                                        " does not divide the " + std::to_string(data) +
                                        " data-parallel ranks; use " +
                                        nearest_divisors(data, replicas));
  }
  const std::int64_t shard = data / replicas, secondary = strategy.zero.secondary_partition;
  if (secondary < 1 || shard % secondary != 0) {
    throw Error(ErrorCode::invalid, std::string(kSecondary) + std::to_string(secondary) +
                                        " does not divide the " + std::to_string(shard) +
                                        " ranks that share the weights; use " +
                                        nearest_divisors(shard, secondary));
  }
  return {.tensor = static_cast<int>(tensor),
          .shard = static_cast<int>(shard),
          .replicate = static_cast<int>(replicas),
          .pipeline = static_cast<int>(pipeline),
          .secondary = static_cast<int>(secondary)};
}

std::string encoder_conflict(const ModelConfig& model, const Strategy& strategy) {
  const bool cut = strategy.tensor.ranks > 1, staged = strategy.pipeline.ranks > 1;
  if (!model.encoder || (!cut && !staged)) return {};
  return std::string("parallel.") + (cut ? "tensor" : "pipeline") +
         ": an encoder (family bert) is whole on every rank: stages would lack the lengths of the "
         "sequences, and its heads are not cut; use data-parallel ranks with ZeRO, and 1 here";
}

std::string tensor_conflict(const Strategy& strategy) {
  const OptimizerKind kind = strategy.optimizer.kind;
  if (strategy.tensor.ranks == 1 || (kind != OptimizerKind::lamb && !is_onebit(kind))) return {};
  return "optimizer.type: LAMB and the one-bit optimizers take norms and momenta of whole weights, "
         "of which a tensor group's ranks have a part each; use AdamW, Adam or SGD, or tensor 1";
}

std::string replicas_conflict(const Strategy& strategy) {
  const ZeroConfig& zero = strategy.zero;
  if (zero.replicas == 1) return {};
  const std::string key = "parallel.replicate: ";
  if (zero.stage == 0) return key + "copies of shards need ZeRO stage 1, 2 or 3, not 0";
  if (zero.quantized_weights || zero.quantized_gradients) {
    return key + "does not go with zero_quantized_weights and zero_quantized_gradients";
  }
  const OptimizerKind kind = strategy.optimizer.kind;
  if (kind == OptimizerKind::lamb || is_onebit(kind)) {
    return key + "does not go with LAMB and the one-bit optimizers; use AdamW, Adam or SGD";
  }
  return {};
}

std::string recompute_conflict(const Strategy& strategy) {
  const auto given = static_cast<std::int64_t>(strategy.recompute.stage_blocks.size());
  const PipelineConfig& pipeline = strategy.pipeline;
  const std::int64_t stages = pipeline.ranks * pipeline.virtual_stages;
  if (given == 0 || given == stages) return {};
  return "recompute: blocks of " + std::to_string(given) + " stages, there " +
         (stages == 1 ? "is 1" : "are " + std::to_string(stages)) + "; give " +
         (stages == 1 ? "one number" : std::to_string(stages) + " numbers, or one for all");
}

std::string secondary_conflict(const Strategy& strategy) {
  const ZeroConfig& zero = strategy.zero;
  if (zero.secondary_partition == 1) return {};
  if (zero.stage != 3) {
    return kSecondary + ("needs stage 3, which gathers weights, not " + std::to_string(zero.stage));
  }
  if (zero.replicas == 1) return {};
  return kSecondary + std::string(
                          "does not go with copies of shards, which gather nearby already; "
                          "use one of the two");
}

ParameterTable parameters_of(const ModelConfig& model, const Strategy& strategy, int rank,
                             const TensorShard& shard) {
  const PipelineConfig& config = strategy.pipeline;
  const Pipeline shape{.kind = config.schedule,
                       .shape = {.ranks = static_cast<int>(config.ranks),
                                 .chunks = static_cast<int>(config.virtual_stages)},
                       .work = {}};
  const ParameterTable whole(model, shard);
  return whole.part(units_of_rank(shape, split_units(model, config), rank, whole.units()),
                    strategy.separate_tied_gradient || shape.stages() > 1);
}

void check_sparse_attention(const Strategy& strategy, const ModelConfig& model,
                            std::int64_t sequence) {
  const SparseAttentionConfig& sparse = strategy.sparse_attention;
  std::string conflict = sparse_conflict(sparse, !model.encoder, sequence);
  if (conflict.empty() && sparse.is_sparse() && model.sliding_window > 0) {
    conflict = "sparse_attention.mode: " + model.name +
               " has a sliding window of its own; remove the section";
  }
  if (!conflict.empty()) throw Error(ErrorCode::invalid, conflict);
}

std::string stage_conflict(const Strategy& strategy) {
  const OptimizerKind kind = strategy.optimizer.kind;
  if (!is_onebit(kind)) return {};
  const std::string stage = std::to_string(strategy.zero.stage);
  if (kind == OptimizerKind::onebit_adam) {
    if (strategy.zero.stage <= 1) return {};
    return stage +
           " does not go with 1-bit Adam, which needs each rank's own gradients whole; "
           "use stage 0 or 1";
  }
  if (strategy.zero.stage == 0) return {};
  return stage +
         " does not go with 0/1 Adam and 1-bit LAMB, whose ranks update all weights; use "
         "stage 0, or OneBitAdam with stage 1";
}

void check_offload(const Strategy& strategy) {
  const OffloadConfig& offload = strategy.offload;
  const std::string zero = "zero_optimization.";
  const auto refuse = [](const std::string& what) { throw Error(ErrorCode::invalid, what); };
  if (offload.optimizer != Tier::device && strategy.zero.stage == 0) {
    refuse(zero + "offload_optimizer.device: needs stage 1, 2 or 3, not 0");
  }
  if (offload.parameters != Tier::device && strategy.zero.stage != 3) {
    refuse(zero + "offload_param.device: needs stage 3, not " +
           std::to_string(strategy.zero.stage));
  }
  if (offload.parameters != Tier::device && offload.optimizer == Tier::device) {
    refuse(zero +
           "offload_param.device: weights on the host are updated there; set "
           "offload_optimizer.device to \"cpu\" or \"nvme\" too");
  }
  const OptimizerKind kind = strategy.optimizer.kind;
  if (offload.optimizer != Tier::device && (kind == OptimizerKind::lamb || is_onebit(kind))) {
    refuse(
        "optimizer.type: LAMB and one-bit optimizers are not updated on the host; use AdamW, "
        "Adam or SGD, or remove " +
        zero + "offload_optimizer");
  }
  if (offload.any() && is_onebit(strategy.optimizer.kind)) {
    refuse("optimizer.type: the 1-bit optimizers exchange momenta on the device; remove " + zero +
           "offload_optimizer");
  }
  if (offload.delayed_update_after >= 0 && offload.parameters != Tier::device) {
    refuse(
        "x-zerolab.delayed_param_update: needs the weights on the device; "
        "remove offload_param");
  }
  if (offload.files() && offload.nvme_path.empty()) {
    refuse(zero + "offload_optimizer.nvme_path: \"nvme\" needs a folder for its files");
  }
}

}  // namespace zl
