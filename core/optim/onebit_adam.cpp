#include "core/optim/onebit_adam.h"
#include "core/ops/elementwise.h"
#include "core/ops/frozen_adam.h"
#include "core/ops/loss.h"

#include <algorithm>
#include <cmath>

namespace zl {
namespace {

enum Kind : int { warm_up, check, freezes, compresses };

OptimizerConfig without_correction_if_compat(OptimizerConfig config) {
  if (config.onebit.deepspeed_compat) config.bias_correction = false;
  return config;
}

}  // namespace

OnebitAdam::OnebitAdam(RankContext& context, const OptimizerConfig& config,
                       std::vector<UpdateRange> ranges, const Partition& partition,
                       const TensorView& local_gradients, bool replicated)
    : Optimizer(context, without_correction_if_compat(config), std::move(ranges), replicated),
      partition_(partition),
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
  if (steps_ + 1 >= config_.onebit.freeze_step) return Kind::freezes;
  return is_check(steps_ + 1) ? Kind::check : Kind::warm_up;
}

void OnebitAdam::step(const StepScalars& scalars) {
  if (frozen()) return compressed(scalars);
  if (config_.onebit.deepspeed_compat && steps_ == 0) {
    ++steps_;  // DeepSpeed's first call only sets up and drops its gradient
  } else {
    Optimizer::step(scalars);
  }
  const bool stable = is_check(steps_) && variance_is_stable();
  if (stable || steps_ >= config_.onebit.freeze_step) freeze();
}

// The paper's rule compares |v|_1 with its value 1 / (1 - beta2) steps before. It is applied both
// ways, because v grows at first (without bias correction from 0) and shrinks later.
bool OnebitAdam::variance_is_stable() {
  Tensor norm = context_.allocate(DType::f64, Shape{1}, MemoryTag::staging, {"variance norm"});
  context_.run(Fill{norm, 0});
  context_.run(Sum{second_, norm});
  if (context_.ranks() > 1 && !replicated_) reduce_scalars(norm, ReduceOp::sum);
  const double bias = 1.0 - std::pow(config_.beta2, static_cast<double>(steps_));
  const double variance =
      context_.read(ProbeKind::variance, norm) / (config_.bias_correction ? bias : 1.0);
  const double before = std::exchange(last_variance_, variance);
  return std::min(before, variance) >=
             config_.onebit.variance_stability * std::max(before, variance) &&
         before > 0;
}

void OnebitAdam::freeze() {
  frozen_at_ = steps_;
  if (replicated_) return;
  std::vector<Segment> segments;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const int p = ranges_[i].parameter;
    segments.push_back({first_.view.flat(offsets_[i], ranges_[i].weights.count()),
                        partition_.padded(whole_momentum_, p)});
  }
  context_.collective(StreamId::compute,
                      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, segments});
  first_.reset();
}

void OnebitAdam::archive(StateArchive& archive, const std::string& prefix) {
  archive.integer(prefix + "frozen_at", frozen_at_);
  archive.number(prefix + "last_variance", last_variance_);
  if (archive.restores() && frozen() && !replicated_) first_.reset();  // as freeze() left it
  Optimizer::archive(archive, prefix);
  archive.tensor(prefix + "whole_first_moment", whole_momentum_.view);
  all_reduce_.archive(archive, prefix);
}

TensorView OnebitAdam::momentum(std::size_t range) const {
  if (replicated_) return first_.view.flat(offsets_[range], ranges_[range].weights.count());
  return partition_.chunk_of(whole_momentum_, ranges_[range].parameter);
}

void OnebitAdam::compressed(const StepScalars& scalars) {
  ++steps_;
  const TensorView& momenta = replicated_ ? first_.view : whole_momentum_.view;
  context_.run(MomentumStep{momenta, local_gradients_, static_cast<float>(scalars.beta1),
                            static_cast<float>(scalars.gradient_scale)});
  all_reduce_.run(momenta);
  FrozenAdamStep op;
  op.lr = static_cast<float>(scalars.lr);
  op.epsilon = static_cast<float>(config_.epsilon);
  op.weight_decay = static_cast<float>(config_.weight_decay);
  if (config_.bias_correction) {
    const auto bias = [](double beta, std::int64_t steps) {
      return static_cast<float>(1.0 - std::pow(beta, static_cast<double>(steps)));
    };
    op.bias1 = bias(scalars.beta1, steps_);
    op.bias2 = bias(scalars.beta2, frozen_at_);  // of the second moment's last update
  }
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    const TensorView& weights = ranges_[i].weights;
    op.param = master(i);
    op.m = momentum(i);
    op.v = second_.view.flat(offsets_[i], weights.count());
    op.copy = has_masters() ? weights : TensorView{};
    context_.run(op);
  }
}

}  // namespace zl
