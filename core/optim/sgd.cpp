#include "core/optim/sgd.h"

#include "core/ops/optimizer.h"

namespace zl {

Sgd::Sgd(RankContext& context, const OptimizerConfig& config, std::vector<UpdateRange> ranges,
         bool replicated, const OptimizerHome& home)
    : context_(context),
      config_(config),
      stream_(home.stream),
      state_(context, std::move(ranges), replicated,
             {.first = config.momentum != 0 ? "momentum" : nullptr, .second = nullptr},
             home.state) {}

void Sgd::step(const StepScalars& scalars) {
  state_.count_step();
  SgdStep op;
  op.lr = static_cast<float>(scalars.lr);
  op.momentum = static_cast<float>(config_.momentum);
  op.weight_decay = static_cast<float>(config_.weight_decay);
  op.grad_scale = static_cast<float>(scalars.gradient_scale);
  op.factor = scalars.factor;
  op.nesterov = config_.nesterov;
  op.first = state_.steps() == 1;
  for (const OptimizerState::Piece& piece : state_.pieces()) {
    op.param = piece.param;
    op.grad = piece.gradient_behind(scalars.gradient_shift);
    op.buf = config_.momentum != 0 ? piece.of(state_.views().first) : TensorView{};
    op.copy = piece.copy;
    context_.run(stream_, op);
  }
}

void Sgd::archive(StateArchive& archive, const std::string& prefix) {
  state_.archive(archive, prefix);
}

}  // namespace zl
