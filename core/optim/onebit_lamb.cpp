#include "core/optim/onebit_lamb.h"
#include "core/ops/elementwise.h"
#include "core/ops/frozen_adam.h"
#include "core/ops/loss.h"
#include "core/ops/onebit_lamb.h"
#include "core/ops/optimizer.h"

#include <cmath>
#include <numeric>

namespace zl {
namespace {

enum Kind : int { warm_up, freezes, compresses };

OptimizerConfig without_correction(OptimizerConfig config) {
  config.bias_correction = false;
  return config;
}

}  // namespace

OnebitLamb::OnebitLamb(RankContext& context, const OptimizerConfig& config,
                       std::vector<UpdateRange> ranges, const Partition& partition,
                       const TensorView& local_gradients)
    : Optimizer(context, without_correction(config), std::move(ranges), true),
      partition_(partition),
      local_gradients_(local_gradients),
      all_reduce_(context, partition, CompressedAllReduce::Scale::shared),
      weights_(parameters(), 1.0) {
  fresh_second_ = allocate("fresh second moment");
  last_first_ = allocate("last first moment");
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
  return {offsets_[parameter], partition_.slot(ranges_[parameter].parameter).count};
}

int OnebitLamb::step_kind() const {
  if (frozen()) return Kind::compresses;
  return steps_ + 1 == config_.onebit.freeze_step ? Kind::freezes : Kind::warm_up;
}

void OnebitLamb::step(const StepScalars& scalars) {
  const bool warm = !frozen();
  ++steps_;
  if (!warm) return compressed(scalars);
  lamb(scalars);
  if (frozen()) freeze();
}

void OnebitLamb::archive(StateArchive& archive, const std::string& prefix) {
  Optimizer::archive(archive, prefix);
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
  return {scratch(DType::f32, elements_), scratch(DType::f32, elements_),
          scratch(DType::f32, elements_), scratch(DType::f32, 3 * count),
          scratch(DType::f64, 4 * count), scratch(DType::f32, count)};
}

// Momenta of one message share a scale, so each parameter's are weighted to the mean root mean
// square of all.
void OnebitLamb::freeze() {
  context_.run(Axpy{second_, fresh_second_});
  context_.run(Axpy{first_, last_first_});
  Tensor bound = context_.allocate(DType::f32, Shape{1}, MemoryTag::workspace, {"1-bit lamb"});
  Tensor square = context_.allocate(DType::f64, Shape{3}, MemoryTag::workspace, {"1-bit lamb"});
  const TensorView parts = square.view.flat(0, 2), sum = square.view.flat(2, 1);
  std::vector<double> sizes;
  for (std::size_t p = 0; p < parameters(); ++p) {
    const Slice part = slice(p);
    context_.run(AbsMax{part.of(first_), bound});
    context_.run(SquaredSum{part.of(first_), bound, parts, part.count});
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
    const TensorView part = slice(p).of(first_);
    context_.run(Axpy{part, part, divide ? 1.0 / weights_[p] : weights_[p]});
  }
}

void OnebitLamb::compressed(const StepScalars& scalars) {
  context_.run(MomentumStep{first_, local_gradients_, static_cast<float>(scalars.beta1),
                            static_cast<float>(scalars.gradient_scale)});
  weigh(false);
  all_reduce_.run(first_);
  weigh(true);
  const Scratch scratch = allocate_scratch();
  for (std::size_t p = 0; p < parameters(); ++p) update(p, scalars, scratch);
}

// Squared norms of direction and update, the largest ratio.
void OnebitLamb::measure(const Slice& slice, std::int64_t parameter, const Scratch& scratch) {
  const auto bound = [&](std::int64_t which) {
    return scratch.bounds.view.flat(3 * parameter + which, 1);
  };
  const auto square = [&](std::int64_t which) {
    return scratch.squares.view.flat(4 * parameter + 2 * which, 2);
  };
  context_.run(AbsMax{slice.of(scratch.direction), bound(0)});
  context_.run(AbsMax{slice.of(scratch.update), bound(1)});
  context_.run(AbsMax{slice.of(scratch.ratio), bound(2)});
  context_.run(SquaredSum{slice.of(scratch.direction), bound(0), square(0), slice.count});
  context_.run(SquaredSum{slice.of(scratch.update), bound(1), square(1), slice.count});
}

void OnebitLamb::update(std::size_t parameter, const StepScalars& scalars, const Scratch& scratch) {
  const Slice part = slice(parameter);
  const auto index = static_cast<std::int64_t>(parameter);
  const TensorView master_view = master(parameter).flat(0, part.count);
  context_.run(OnebitLambUpdate{
      master_view, part.of(first_), part.of(last_first_), part.of(second_), part.of(fresh_second_),
      part.of(scratch.direction), part.of(scratch.update), part.of(scratch.ratio),
      static_cast<float>(scalars.beta1), static_cast<float>(scalars.beta2),
      static_cast<float>(config_.epsilon), static_cast<float>(config_.weight_decay)});
  measure(part, index, scratch);
  const OnebitConfig& onebit = config_.onebit;
  const TensorView trust = scratch.trusts.view.flat(index, 1);
  context_.run(OnebitLambTrust{
      scratch.bounds.view.flat(3 * index + 2, 1), scratch.squares.view.flat(4 * index, 2),
      scratch.squares.view.flat(4 * index + 2, 2), trust_averages_.view.flat(index, 1),
      last_factors_.view.flat(index, 1), trust, static_cast<float>(onebit.factor_min),
      static_cast<float>(onebit.factor_max), static_cast<float>(onebit.factor_threshold)});
  const TensorView copy =
      has_masters() ? ranges_[parameter].weights.flat(0, part.count) : TensorView{};
  context_.run(ScaledStep{master_view, part.of(scratch.update), trust, copy,
                          static_cast<float>(scalars.lr)});
}

}  // namespace zl
