#include "core/train/initialize.h"

#include <string>

namespace zl {
namespace {

void require(bool ok, const std::string& message) {
  if (!ok) throw Error(ErrorCode::invalid, message);
}

void check(const ModelConfig& model, const Strategy& strategy, std::int64_t sequence_length) {
  require(
      strategy.zero.stage >= 0 && strategy.zero.stage <= 3,
      "strategy.zero_stage: " + std::to_string(strategy.zero.stage) + " is not one of 0, 1, 2, 3");
  require(strategy.micro_batch >= 1 && strategy.gradient_accumulation >= 1,
          "strategy.micro_batch and strategy.gradient_accumulation are at least 1");
  const OptimizerKind kind = strategy.optimizer.kind;
  require(!strategy.precision.stochastic_rounding ||
              (strategy.precision.compute_dtype == DType::bf16 &&
               (kind == OptimizerKind::adamw || kind == OptimizerKind::adam)),
          "strategy.stochastic_rounding is for bf16 under AdamW or Adam");
  require(model.position != PositionKind::learned || sequence_length <= model.positions(),
          "sequence_length: " + std::to_string(sequence_length) + " is more than the model's " +
              std::to_string(model.positions()) + " positions");
}

}  // namespace

Session::Session(Device& device, Communicator& world, const ModelConfig& model,
                 const Strategy& strategy, const SessionOptions& options)
    : sequence_length_(options.sequence_length > 0 ? options.sequence_length : model.positions()) {
  check(model, strategy, sequence_length_);
  context_ = std::make_unique<RankContext>(device, world,
                                           RankOptions{.device_memory = options.device_memory,
                                                       .record_trace = false,
                                                       .mesh = mesh_of(strategy, world.size())});
  engine_ = std::make_unique<Engine>(*context_, model, strategy, sequence_length_,
                                     InitialWeights(options.seed, options.weights));
}

Session initialize(ModelConfig model, const Strategy& strategy, Device& device, Communicator& world,
                   const SessionOptions& options) {
  model.complete();
  return Session(device, world, model, strategy, options);
}

}  // namespace zl
