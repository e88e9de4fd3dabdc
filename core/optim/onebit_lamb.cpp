#include "core/optim/onebit_lamb.h"
#include "core/ops/elementwise.h"
#include "core/ops/frozen_adam.h"
#include "core/ops/loss.h"
#include "core/ops/onebit_lamb.h"
#include "core/ops/optimizer.h"
#include "core/optim/bias_correction.h"
#include "core/optim/lamb.h"

#include <cmath>
#include <numeric>

namespace zl {
namespace {

enum Kind : int { warm_up, freezes, compresses };

}  // namespace

OnebitLamb::OnebitLamb(RankContext& context, const OptimizerConfig& config,
                       std::vector<UpdateRange> ranges, const Partition& partition,
                       const TensorView& local_gradients)
    : context_(context),
      config_(without_bias_correction(config)),
      partition_(partition),
      state_(context, std::move(ranges), true, {.merge = false}),
      local_gradients_(local_gradients),
      all_reduce_(context, partition, CompressedAllReduce::Scale::shared),
      weights_(parameters(), 1.0) {
  fresh_second_ = state_.allocate("fresh second moment");
  last_first_ = state_.allocate("last first moment");
  const auto count = static_cast<std::int64_t>(parameters());
  const auto per_parameter = [&](const char* what, double value) {
    Tensor tensor = context.allocate(DType::f32, Shape{count}, MemoryTag::optimizer, {what});
    context.run(Fill{tensor, value});
    return tensor;
  };
  trust_averages_ = per_parameter("average trust ratios", 0);
  last_factors_ = per_parameter("last factors", 1);
}

OnebitLamb::Slice OnebitLamb::slice(std::size_t parameter) const {
  return {state_.offset(parameter), partition_.slot(state_.ranges()[parameter].parameter).count};
}

int OnebitLamb::step_kind() const {
  if (frozen()) return Kind::compresses;
  return steps() + 1 == config_.onebit.freeze_step ? Kind::freezes : Kind::warm_up;
}

void OnebitLamb::step(const StepScalars& scalars) {
  const bool warm = !frozen();
  state_.count_step();
  if (!warm) return compressed(scalars);
  lamb_step(context_, state_, config_, scalars, trust_averages_);
  if (frozen()) freeze();
}

void OnebitLamb::archive(StateArchive& archive, const std::string& prefix) {
  state_.archive(archive, prefix);
  archive.tensor(prefix + "average_trust_ratios", trust_averages_.view);
  all_reduce_.archive(archive, prefix);
  archive.tensor(prefix + "fresh_second_moment", fresh_second_.view);
  archive.tensor(prefix + "last_first_moment", last_first_.view);
  archive.tensor(prefix + "last_factors", last_factors_.view);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    archive.number(prefix + "weight_of_momenta_" + std::to_string(i), weights_[i]);
  }
}

OnebitLamb::Scratch OnebitLamb::allocate_scratch() {
  const auto count = static_cast<std::int64_t>(parameters());
  const auto scratch = [&](DType dtype, std::int64_t elements) {
    return context_.allocate(dtype, Shape{elements}, MemoryTag::workspace, {"1-bit lamb"});
  };
  const std::int64_t elements = state_.elements();
  return {scratch(DType::f32, elements),  scratch(DType::f32, elements),
          scratch(DType::f32, elements),  scratch(DType::f32, 3 * count),
          scratch(DType::f64, 4 * count), scratch(DType::f32, count)};
}

// Momenta of one message share a scale, so each parameter's are weighted to the mean root mean
// square of all.
void OnebitLamb::freeze() {
  const TensorView& first = state_.views().first;
  context_.run(Axpy{.x = state_.views().second, .y = fresh_second_});
  context_.run(Axpy{.x = first, .y = last_first_});
  Tensor bound = context_.allocate(DType::f32, Shape{1}, MemoryTag::workspace, {"1-bit lamb"});
  Tensor square = context_.allocate(DType::f64, Shape{3}, MemoryTag::workspace, {"1-bit lamb"});
  const TensorView parts = square.view.flat(0, 2), sum = square.view.flat(2, 1);
  std::vector<double> sizes;
  for (std::size_t p = 0; p < parameters(); ++p) {
    const Slice part = slice(p);
    context_.run(AbsMax{.x = part.of(first), .out = bound});
    context_.run(
        SquaredSum{.x = part.of(first), .bound = bound, .out = parts, .total_count = part.count});
    context_.run(Sum{parts, sum});
    const double mean =
        context_.read(ProbeKind::squared_norm, sum) / static_cast<double>(part.count);
    sizes.push_back(std::sqrt(mean));
  }
  const double mean =
      std::accumulate(sizes.begin(), sizes.end(), 0.0) / static_cast<double>(sizes.size());
  for (std::size_t p = 0; p < parameters(); ++p) {
    if (sizes[p] > 0) weights_[p] = mean / sizes[p];
  }
}

void OnebitLamb::weigh(bool divide) {
  for (std::size_t p = 0; p < parameters(); ++p) {
    const TensorView part = slice(p).of(state_.views().first);
    context_.run(Axpy{.x = part, .y = part, .alpha = divide ? 1.0 / weights_[p] : weights_[p]});
  }
}

void OnebitLamb::compressed(const StepScalars& scalars) {
  const TensorView& momenta = state_.views().first;
  context_.run(MomentumStep{.m = momenta,
                            .grad = local_gradients_,
                            .beta1 = static_cast<float>(scalars.beta1),
                            .grad_scale = static_cast<float>(scalars.gradient_scale),
                            .factor = scalars.factor});
  weigh(false);
  all_reduce_.run(momenta);
  weigh(true);
  const Scratch scratch = allocate_scratch();
  for (std::size_t p = 0; p < parameters(); ++p) update(p, scalars, scratch);
}

// Squared norms of direction and update, the largest ratio.
void OnebitLamb::measure(const Slice& slice, std::int64_t parameter, const Scratch& scratch) {
  const auto bound = [&](const Tensor& x, int which) {
    context_.run(AbsMax{.x = slice.of(x), .out = scratch.bound(parameter, which)});
  };
  const auto square = [&](const Tensor& x, int which) {
    context_.run(SquaredSum{.x = slice.of(x),
                            .bound = scratch.bound(parameter, which),
                            .out = scratch.square(parameter, which),
                            .total_count = slice.count});
  };
  bound(scratch.direction, 0);
  bound(scratch.update, 1);
  bound(scratch.ratio, 2);
  square(scratch.direction, 0);
  square(scratch.update, 1);
}

void OnebitLamb::update(std::size_t parameter, const StepScalars& scalars, const Scratch& scratch) {
  const Slice part = slice(parameter);
  const auto index = static_cast<std::int64_t>(parameter);
  const TensorView param = master(parameter).flat(0, part.count);
  context_.run(OnebitLambUpdate{.param = param,
                                .m = part.of(state_.views().first),
                                .m_last = part.of(last_first_),
                                .v = part.of(state_.views().second),
                                .v_fresh = part.of(fresh_second_),
                                .direction = part.of(scratch.direction),
                                .update = part.of(scratch.update),
                                .ratio = part.of(scratch.ratio),
                                .beta1 = static_cast<float>(scalars.beta1),
                                .beta2 = static_cast<float>(scalars.beta2),
                                .epsilon = static_cast<float>(config_.epsilon),
                                .weight_decay = static_cast<float>(config_.weight_decay)});
  measure(part, index, scratch);
  const OnebitConfig& onebit = config_.onebit;
  const TensorView trust = scratch.trusts.view.flat(index, 1);
  context_.run(OnebitLambTrust{.largest_ratio = scratch.bound(index, 2),
                               .direction_square = scratch.square(index, 0),
                               .update_square = scratch.square(index, 1),
                               .frozen = trust_averages_.view.flat(index, 1),
                               .last = last_factors_.view.flat(index, 1),
                               .trust = trust,
                               .factor_min = static_cast<float>(onebit.factor_min),
                               .factor_max = static_cast<float>(onebit.factor_max),
                               .threshold = static_cast<float>(onebit.factor_threshold)});
  const TensorView& weights = state_.ranges()[parameter].weights;
  context_.run(ScaledStep{.param = param,
                          .update = part.of(scratch.update),
                          .scale = trust,
                          .copy = has_masters() ? weights.flat(0, part.count) : TensorView{},
                          .lr = static_cast<float>(scalars.lr)});
}

}  // namespace zl
