#include "core/optim/adam.h"

#include "core/base/random_streams.h"
#include "core/ops/optimizer.h"
#include "core/optim/bias_correction.h"

namespace zl {

void adam_step(RankContext& context, const OptimizerState& state, const OptimizerConfig& config,
               const StepScalars& scalars, const AdamVariant& variant) {
  AdamStep op;
  op.lr = static_cast<float>(scalars.lr);
  op.beta1 = static_cast<float>(scalars.beta1);
  op.beta2 = static_cast<float>(scalars.beta2);
  op.epsilon = static_cast<float>(config.epsilon);
  op.weight_decay = static_cast<float>(config.weight_decay);
  op.grad_scale = static_cast<float>(scalars.gradient_scale);
  op.factor = scalars.factor;
  op.decoupled = variant.decoupled;
  op.bias1 = bias_of(config, scalars.beta1, state.steps());
  op.bias2 = bias_of(config, scalars.beta2, state.steps());
  op.stochastic = variant.rounding.on;
  for (const OptimizerState::Piece& piece : state.pieces()) {
    const UpdateRange& range = state.ranges()[piece.range];
    op.key = {variant.rounding.seed, static_cast<std::uint32_t>(state.steps()),
              rounding_stream(range.number)};
    op.base = static_cast<std::uint64_t>(range.begin);
    op.param = piece.param;
    op.grad = piece.gradient_behind(scalars.gradient_shift);
    op.copy = piece.copy;
    op.m = piece.of(state.views().first);
    op.v = piece.of(state.views().second);
    context.run(variant.stream, op);
  }
}

Adam::Adam(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
           bool replicated, bool decoupled, const OptimizerHome& home)
    : context_(context),
      config_(config),
      variant_{decoupled, home.stream, home.rounding},
      state_(context, std::move(ranges), replicated, {.merge = !home.rounding.on}, home.state) {}

void Adam::step(const StepScalars& scalars) {
  state_.count_step();
  adam_step(context_, state_, config_, scalars, variant_);
}

void Adam::archive(StateArchive& archive, const std::string& prefix) {
  state_.archive(archive, prefix);
}

}  // namespace zl
