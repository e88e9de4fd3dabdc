#include "core/optim/lamb.h"

#include "core/ops/elementwise.h"
#include "core/ops/optimizer.h"
#include "core/optim/bias_correction.h"

namespace zl {
namespace {

// What one step needs for a while. Of each piece: two bounds and two squared norms, of the
// parameter and of its update.
struct Scratch {
  Tensor updates, bounds, squares;

  TensorView update(const OptimizerState::Piece& piece) const { return piece.of(updates); }
  TensorView bound(std::int64_t i, int which) const { return bounds.view.flat(2 * i + which, 1); }
  TensorView square(std::int64_t i, int which) const {
    return squares.view.flat(4 * i + 2 * which, 2);
  }
};

Scratch allocate_scratch(RankContext& context, const OptimizerState& state) {
  const auto pieces = static_cast<std::int64_t>(state.pieces().size());
  const auto scratch = [&](DType dtype, std::int64_t elements) {
    return context.allocate(dtype, Shape{elements}, MemoryTag::workspace, {"lamb"});
  };
  return {scratch(DType::f32, state.elements()), scratch(DType::f32, 2 * pieces),
          scratch(DType::f64, 4 * pieces)};
}

LambUpdate update_op(const OptimizerState& state, const OptimizerConfig& config,
                     const StepScalars& scalars) {
  LambUpdate op;
  op.beta1 = static_cast<float>(scalars.beta1);
  op.beta2 = static_cast<float>(scalars.beta2);
  op.epsilon = static_cast<float>(config.epsilon);
  op.weight_decay = static_cast<float>(config.weight_decay);
  op.bias1 = bias_of(config, scalars.beta1, state.steps());
  op.bias2 = bias_of(config, scalars.beta2, state.steps());
  op.grad_scale = static_cast<float>(scalars.gradient_scale);
  op.factor = scalars.factor;
  return op;
}

void find_updates(RankContext& context, const OptimizerState& state, const Scratch& scratch,
                  LambUpdate op) {
  std::int64_t i = 0;
  for (const OptimizerState::Piece& piece : state.pieces()) {
    op.param = piece.param;
    op.grad = piece.gradient;
    op.m = piece.of(state.views().first);
    op.v = piece.of(state.views().second);
    op.update = scratch.update(piece);
    context.run(op);
    context.run(AbsMax{.x = piece.param, .out = scratch.bound(i, 0)});
    context.run(AbsMax{.x = op.update, .out = scratch.bound(i, 1)});
    ++i;
  }
}

void measure(RankContext& context, const OptimizerState& state, const Scratch& scratch) {
  std::int64_t i = 0;
  for (const OptimizerState::Piece& piece : state.pieces()) {
    const std::int64_t parts = state.replicated() ? 1 : context.ranks(Axis::data);
    const auto square = [&](const TensorView& x, int which) {
      context.run(SquaredSum{.x = x,
                             .bound = scratch.bound(i, which),
                             .out = scratch.square(i, which),
                             .total_count = piece.count() * parts});
    };
    square(piece.param, 0);
    square(scratch.update(piece), 1);
    ++i;
  }
}

}  // namespace

// Norms of a parameter and its update are over all ranks: bounds by a max, then the
// order-independent squares, so that the trust ratio does not depend on the partition.
void lamb_step(RankContext& context, const OptimizerState& state, const OptimizerConfig& config,
               const StepScalars& scalars, const TensorView& averages) {
  const Scratch scratch = allocate_scratch(context, state);
  find_updates(context, state, scratch, update_op(state, config, scalars));
  state.reduce(scratch.bounds, ReduceOp::max);
  measure(context, state, scratch);
  state.reduce(scratch.squares, ReduceOp::sum);
  LambApply op;
  op.lr = static_cast<float>(scalars.lr);
  op.min_trust = static_cast<float>(config.lamb_min_trust);
  op.max_trust = static_cast<float>(config.lamb_max_trust);
  op.average_beta = static_cast<float>(config.onebit.coeff_beta);
  std::int64_t i = 0;
  for (const OptimizerState::Piece& piece : state.pieces()) {
    op.param = piece.param;
    op.update = scratch.update(piece);
    op.param_square = scratch.square(i, 0);
    op.update_square = scratch.square(i, 1);
    op.copy = piece.copy;
    op.average = averages.empty() ? TensorView{} : averages.flat(i, 1);
    context.run(op);
    ++i;
  }
}

Lamb::Lamb(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
           bool replicated)
    : context_(context),
      config_(config),
      state_(context, std::move(ranges), replicated, {.merge = false}) {}

void Lamb::step(const StepScalars& scalars) {
  state_.count_step();
  lamb_step(context_, state_, config_, scalars);
}

void Lamb::archive(StateArchive& archive, const std::string& prefix) {
  state_.archive(archive, prefix);
}

}  // namespace zl
