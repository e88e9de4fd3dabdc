#include "core/optim/onebit_adam.h"
#include "core/ops/elementwise.h"
#include "core/ops/frozen_adam.h"
#include "core/ops/loss.h"
#include "core/optim/adam.h"
#include "core/optim/bias_correction.h"

#include <algorithm>
#include <cmath>

namespace zl {
namespace {

enum Kind : int { warm_up, check, freezes, compresses };

}  // namespace

OnebitAdam::OnebitAdam(RankContext& context, const OptimizerConfig& config,
                       std::vector<UpdateRange> ranges, const Partition& partition,
                       const TensorView& local_gradients, bool replicated)
    : context_(context),
      config_(config.onebit.deepspeed_compat ? without_bias_correction(config) : config),
      partition_(partition),
      state_(context, std::move(ranges), replicated, {}),
      local_gradients_(local_gradients),
      all_reduce_(context, partition, CompressedAllReduce::Scale::per_parameter),
      check_every_(std::max<std::int64_t>(1, std::llround(1.0 / (1.0 - config.beta2)))) {
  if (replicated) return;
  whole_momentum_ = context_.allocate(DType::f32, Shape{partition.full_elements()},
                                      MemoryTag::optimizer, {"first moment of all ranks"});
}

bool OnebitAdam::is_check(std::int64_t step) const {
  return config_.onebit.automatic_freeze && step % check_every_ == 0;
}

int OnebitAdam::step_kind() const {
  if (frozen()) return Kind::compresses;
  const std::int64_t coming = steps() + 1;
  if (coming >= config_.onebit.freeze_step) return Kind::freezes;
  return is_check(coming) ? Kind::check : Kind::warm_up;
}

void OnebitAdam::step(const StepScalars& scalars) {
  state_.count_step();
  if (frozen()) return compressed(scalars);
  // DeepSpeed's first call only sets up and drops its gradient.
  const bool dropped = config_.onebit.deepspeed_compat && steps() == 1;
  if (!dropped) adam_step(context_, state_, config_, scalars);
  const bool stable = is_check(steps()) && variance_is_stable();
  if (stable || steps() >= config_.onebit.freeze_step) freeze();
}

// The paper's rule compares |v|_1 with its value 1 / (1 - beta2) steps before. It is applied both
// ways, because v grows at first (without bias correction from 0) and shrinks later.
bool OnebitAdam::variance_is_stable() {
  Tensor norm = context_.allocate(DType::f64, Shape{1}, MemoryTag::staging, {"variance norm"});
  context_.run(Fill{norm, 0});
  context_.run(Sum{state_.views().second, norm});
  state_.reduce(norm, ReduceOp::sum);
  const double bias = 1.0 - std::pow(config_.beta2, static_cast<double>(steps()));
  const double variance =
      context_.read(ProbeKind::variance, norm) / (config_.bias_correction ? bias : 1.0);
  const double before = std::exchange(last_variance_, variance);
  return std::min(before, variance) >=
             config_.onebit.variance_stability * std::max(before, variance) &&
         before > 0;
}

void OnebitAdam::freeze() {
  frozen_at_ = steps();
  if (state_.replicated()) return;
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < state_.ranges().size(); ++i) {
    const int p = state_.ranges()[i].parameter;
    segments.push_back(
        {state_.part(state_.views().first, i), partition_.padded(whole_momentum_, p)});
  }
  context_.collective(StreamId::compute,
                      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, segments});
  state_.drop_first_moment();
}

void OnebitAdam::archive(StateArchive& archive, const std::string& prefix) {
  archive.integer(prefix + "frozen_at", frozen_at_);
  archive.number(prefix + "last_variance", last_variance_);
  const bool dropped = frozen() && !state_.replicated();
  if (archive.restores() && dropped) state_.drop_first_moment();  // as freeze() left it
  state_.archive(archive, prefix);
  archive.tensor(prefix + "whole_first_moment", whole_momentum_.view);
  all_reduce_.archive(archive, prefix);
}

TensorView OnebitAdam::momentum(std::size_t range) const {
  if (state_.replicated()) return state_.part(state_.views().first, range);
  return partition_.chunk_of(whole_momentum_, state_.ranges()[range].parameter);
}

void OnebitAdam::compressed(const StepScalars& scalars) {
  const TensorView& momenta = state_.replicated() ? state_.views().first : whole_momentum_.view;
  context_.run(MomentumStep{.m = momenta,
                            .grad = local_gradients_,
                            .beta1 = static_cast<float>(scalars.beta1),
                            .grad_scale = static_cast<float>(scalars.gradient_scale),
                            .factor = scalars.factor});
  all_reduce_.run(momenta);
  FrozenAdamStep op;
  op.lr = static_cast<float>(scalars.lr);
  op.epsilon = static_cast<float>(config_.epsilon);
  op.weight_decay = static_cast<float>(config_.weight_decay);
  op.bias1 = bias_of(config_, scalars.beta1, steps());
  op.bias2 = bias_of(config_, scalars.beta2, frozen_at_);  // of the second moment's last update
  for (std::size_t i = 0; i < state_.ranges().size(); ++i) {
    op.param = master(i);
    op.m = momentum(i);
    op.v = state_.part(state_.views().second, i);
    op.copy = has_masters() ? state_.ranges()[i].weights : TensorView{};
    context_.run(op);
  }
}

}  // namespace zl
