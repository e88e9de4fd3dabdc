#include "core/optim/zero_one_adam.h"
#include "core/ops/elementwise.h"
#include "core/ops/frozen_adam.h"
#include "core/optim/adam.h"
#include "core/optim/bias_correction.h"

#include <algorithm>

namespace zl {
namespace {

enum Kind : int { variance, one_bit, first_local, first_shared, stays_local, shared };

}  // namespace

ZeroOneAdam::ZeroOneAdam(RankContext& context, const OptimizerConfig& config,
                         std::vector<UpdateRange> ranges, const Partition& partition,
                         const TensorView& local_gradients)
    : context_(context),
      config_(without_bias_correction(config)),
      // Masters always: working weights move away from them.
      state_(context, std::move(ranges), true, {.own_masters = true}),
      local_gradients_(local_gradients),
      all_reduce_(context, partition, CompressedAllReduce::Scale::per_parameter) {
  moved_ = state_.allocate("local movement");
}

bool ZeroOneAdam::averages_gradients() const {
  return variance_is_live(coming()) && coming() % variance_interval_ == 0;
}

int ZeroOneAdam::step_kind() const {
  if (variance_is_live(coming())) return averages_gradients() ? Kind::variance : Kind::one_bit;
  const bool first = variance_is_live(steps());
  if (is_shared()) return first ? Kind::first_shared : Kind::shared;
  return first ? Kind::first_local : Kind::stays_local;
}

void ZeroOneAdam::step(const StepScalars& scalars) {
  if (averages_gradients()) {
    adam_step(context_, state_, config_, scalars);
  } else if (variance_is_live(coming())) {
    compressed(scalars);
  } else {
    local(scalars);
  }
  skip();
}

void ZeroOneAdam::skip() {
  const OnebitConfig& onebit = config_.onebit;
  if (averages_gradients() && ++variance_updates_ == onebit.var_update_scaler) {
    variance_updates_ = 0;
    variance_interval_ *= 2;
  }
  if (!variance_is_live(coming()) && ++local_steps_ == onebit.local_step_scaler) {
    local_steps_ = 0;
    local_interval_ = std::min(onebit.local_step_clipper, 2 * local_interval_);
  }
  state_.count_step();
}

// All ranges are contiguous and cover the partition's full buffer, as the state does.
TensorView ZeroOneAdam::working_weights() const {
  const TensorView& first = state_.ranges().front().weights;
  return {first.data, first.dtype, Shape{state_.elements()}};
}

void ZeroOneAdam::compressed(const StepScalars& scalars) {
  Tensor gradients = context_.allocate(DType::f32, Shape{state_.elements()}, MemoryTag::workspace,
                                       {"gradients to compress"});
  // Unscaled before they are compressed: what the errors keep must not depend on the loss scale.
  context_.run(Axpy{.x = local_gradients_,
                    .y = gradients,
                    .alpha = scalars.gradient_scale,
                    .factor = scalars.factor});
  all_reduce_.run(gradients);
  const StateViews& all = state_.views();
  context_.run(
      MomentumStep{.m = all.first, .grad = gradients, .beta1 = static_cast<float>(scalars.beta1)});
  FrozenAdamStep op{
      .param = all.master, .m = all.first, .v = all.second, .copy = working_weights()};
  op.lr = static_cast<float>(scalars.lr);
  op.epsilon = static_cast<float>(config_.epsilon);
  op.weight_decay = static_cast<float>(config_.weight_decay);
  context_.run(op);
}

void ZeroOneAdam::local(const StepScalars& scalars) {
  if (variance_is_live(steps())) all_reduce_.clear_errors();  // they were of gradients
  const StateViews& all = state_.views();
  context_.run(MomentumStep{.m = all.first,
                            .grad = local_gradients_,
                            .beta1 = static_cast<float>(scalars.beta1),
                            .grad_scale = static_cast<float>(scalars.gradient_scale),
                            .factor = scalars.factor});
  context_.run(LocalAdamStep{.param = all.master,
                             .m = all.first,
                             .v = all.second,
                             .moved = moved_,
                             .copy = working_weights(),
                             .lr = static_cast<float>(scalars.lr),
                             .epsilon = static_cast<float>(config_.epsilon),
                             .weight_decay = static_cast<float>(config_.weight_decay)});
  lr_sum_ += scalars.lr;
  if (is_shared()) share();
}

void ZeroOneAdam::share() {
  const auto epsilon = static_cast<float>(config_.epsilon);
  const StateViews& all = state_.views();
  context_.run(DenominatorScale{.x = moved_, .v = all.second, .epsilon = epsilon});
  all_reduce_.run(moved_);
  const double rates = std::exchange(lr_sum_, 0.0);
  context_.run(SharedAdamStep{.param = all.master,
                              .m = all.first,
                              .v = all.second,
                              .moved = moved_,
                              .copy = working_weights(),
                              .epsilon = epsilon,
                              .lr_sum = rates > 0 ? static_cast<float>(rates) : 1.0f});
}

void ZeroOneAdam::archive(StateArchive& archive, const std::string& prefix) {
  state_.archive(archive, prefix);
  all_reduce_.archive(archive, prefix);
  archive.tensor(prefix + "movement", moved_.view);
  archive.number(prefix + "learning_rate_sum", lr_sum_);
  archive.integer(prefix + "variance_interval", variance_interval_);
  archive.integer(prefix + "variance_updates", variance_updates_);
  archive.integer(prefix + "local_interval", local_interval_);
  archive.integer(prefix + "local_steps", local_steps_);
}

}  // namespace zl
