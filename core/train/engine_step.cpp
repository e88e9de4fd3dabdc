// The end of a step: what the ranks agree on about their gradients, and the update.
#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/ops/elementwise.h"
#include "core/ops/loss.h"
#include "core/ops/optimizer.h"
#include "core/train/engine.h"

namespace zl {

StepMetrics Engine::step(bool stop, bool overflows) {
  for (const Chunk& chunk : chunks_) {
    ZL_CHECK(chunk.weight_gradients == strategy_.gradient_accumulation,
             "step() comes after gradient_accumulation forward/backward pairs");
  }
  ScopeGuard scope(context_, Phase::optimizer, -1);
  add_tied_gradients();
  StepMetrics metrics;
  metrics.lr = learning_rate_.lr();
  metrics.loss_scale = scaler_.scale();
  find_bound();
  if (scales_loss(strategy_)) {
    metrics.skipped = !std::isfinite(context_.read(ProbeKind::overflow, bound_)) || overflows;
  }
  double unscale = 1.0 / scaler_.scale();
  // DeepSpeed's order updates the scale first and divides by the new one.
  if (strategy_.deepspeed_scale_order) {
    if (!overflows) scaler_.update(metrics.skipped);
    unscale = 1.0 / scaler_.scale();
  }
  const double gradients = gradients_in_norm();  // the update may change what the next step takes
  if (!metrics.skipped) {
    reduce_squares();
    update(scalars(metrics, unscale));
  } else if (host_step_ && host_step_->apply_delayed()) {
    weights_->gather_updated();
  }
  if (!strategy_.deepspeed_scale_order && !overflows) scaler_.update(metrics.skipped);
  if (stop) context_.run(Fill{loss_.view.flat(1, 1), 1});
  reduce_scalar(loss_, ReduceOp::average);
  read_metrics(metrics, gradients);
  context_.run(Fill{loss_.view, 0});
  host_batches_.clear();
  for (Chunk& chunk : chunks_) {
    chunk.forwards = chunk.backwards = chunk.weight_gradients = chunk.skipped = 0;
  }
  ++step_;
  return metrics;
}

// The first read waits for the step; the others find its stream idle.
void Engine::read_metrics(StepMetrics& metrics, double gradients) {
  metrics.loss = context_.read(ProbeKind::loss, loss_);
  metrics.stop = context_.read(ProbeKind::stop, loss_.view.flat(1, 1)) > 0;
  metrics.grad_norm = -1.0;
  if (metrics.skipped) return;
  const double squares = context_.read(ProbeKind::squared_norm, squares_.view.flat(2, 1));
  metrics.grad_norm = std::sqrt(squares / gradients) / metrics.loss_scale;
}

// The sum of the squares' parts, and with it the clipping factor, where the device needs them.
StepScalars Engine::scalars(const StepMetrics& metrics, double unscale) {
  StepScalars scalars{metrics.lr, learning_rate_.beta1().value_or(strategy_.optimizer.beta1),
                      learning_rate_.beta2().value_or(strategy_.optimizer.beta2), unscale};
  const TensorView parts = squares_.view.flat(0, 2), sum = squares_.view.flat(2, 1);
  if (strategy_.gradient_clipping <= 0) {
    context_.run(Sum{parts, sum});
    return scalars;
  }
  scalars.factor = parts.flat(0, 1);
  context_.run(ClipFactor{.parts = parts,
                          .sum = sum,
                          .factor = scalars.factor,
                          .gradients = gradients_in_norm(),
                          .loss_scale = metrics.loss_scale,
                          .unscale = unscale,
                          .max_norm = strategy_.gradient_clipping});
  return scalars;
}

void Engine::update(const StepScalars& scalars) {
  if (optimizer_) optimizer_->step(scalars);
  if (host_step_) host_step_->step(scalars);
  weights_->gather_updated();
  learning_rate_.step();
}

// This rank's share of the reduced gradients on the device, together with what is on the host the
// ranks cover every element exactly once; or all of its own, where they are not averaged.
std::vector<TensorView> Engine::reduction_ranges() {
  const std::int64_t copied =
      has_tied_copy() ? partition_.slot(table_.head).padded : std::int64_t{0};
  const std::int64_t counted = partition_.full_elements() - copied;  // a copy is the last parameter
  if (!averages_gradients()) return {gradients_->local().flat(0, counted)};
  std::vector<TensorView> ranges;
  const auto add = [&](const TensorView& view) {
    if (!ranges.empty() && ranges.back().data + ranges.back().bytes() == view.data) {
      ranges.back() = {ranges.back().data, view.dtype, Shape{ranges.back().count() + view.count()}};
    } else {
      ranges.push_back(view);
    }
  };
  if (strategy_.zero.stage == 0 && !tensor_.has_others()) {
    const TensorView all{gradients_->owned(0).data, strategy_.precision.grad_accum_dtype,
                         Shape{counted}};
    return {partition_.own_chunk(all)};
  }
  for (int p = 0; p < placement_.first_on_host(); ++p) {
    if (has_tied_copy() && p == table_.head) continue;  // counted by the stage of the embedding
    const TensorView view = counted_gradient(p);
    if (view.count() > 0) add(view);
  }
  return ranges;
}

TensorView Engine::counted_gradient(int parameter) {
  const ParameterSpec& spec = table_.specs[parameter];
  const TensorView owned = gradients_->owned(parameter);
  const TensorView chunk = strategy_.zero.stage == 0 ? partition_.own_chunk(owned) : owned;
  if (spec.counted < 0) return chunk;
  const std::int64_t left = spec.counted - partition_.owned_begin(parameter);
  return chunk.flat(0, std::clamp<std::int64_t>(left, 0, chunk.count()));
}

std::vector<TensorView> Engine::counted_on_host() {
  if (!tensor_.has_others() && !has_tied_copy()) return {gradients_->host()->all()};
  std::vector<TensorView> ranges;
  for (int p = placement_.first_on_host(); p < static_cast<int>(partition_.size()); ++p) {
    if (has_tied_copy() && p == table_.head) continue;
    const TensorView counted = counted_gradient(p);
    if (counted.count() > 0) ranges.push_back(counted);
  }
  return ranges;
}

void Engine::reduce_scalar(const TensorView& value, ReduceOp op) {
  const Segment segment{value, value};
  // Copies of shards have the same gradients: a sum takes one of them.
  const Axis first = op == ReduceOp::sum ? context_.mesh().sharding() : Axis::data;
  context_.collective(StreamId::compute,
                      {CollectiveKind::all_reduce, op, Purpose::control, {&segment, 1}, first});
  const auto reduce_over = [&](Axis axis, ReduceOp over) {
    if (context_.ranks(axis) == 1) return;
    context_.collective(StreamId::compute,
                        {CollectiveKind::all_reduce, over, Purpose::control, {&segment, 1}, axis});
  };
  // One stage has the loss and the others zero; each has the norm of its own parameters.
  reduce_over(Axis::pipeline, op == ReduceOp::max ? ReduceOp::max : ReduceOp::sum);
  // All ranks of a tensor group have the loss; each has the norm of its parts.
  reduce_over(Axis::tensor, op == ReduceOp::sum ? ReduceOp::sum : ReduceOp::max);
}

// The largest gradient of all ranks, which the exact sum of squares needs.
void Engine::find_bound() {
  bool first = true;
  for (const TensorView& range : reduction_ranges()) {
    context_.run(AbsMax{range, bound_, !first});
    first = false;
  }
  if (gradients_->host() != nullptr) gradients_->host()->add_bound(bound_, !first);
  reduce_scalar(bound_, ReduceOp::max);
}

// Parts of the squared norm of the averaged gradients; where the ranks have their own, of all.
void Engine::reduce_squares() {
  const std::int64_t total =
      model_elements_ * (averages_gradients() ? 1 : context_.ranks(Axis::data));
  const TensorView parts = squares_.view.flat(0, 2);
  bool first = true;
  for (const TensorView& range : reduction_ranges()) {
    context_.run(SquaredSum{range, bound_, parts, total, !first});
    first = false;
  }
  if (gradients_->host() != nullptr) {
    gradients_->host()->add_squares(bound_, parts, model_elements_, counted_on_host(), !first);
  }
  reduce_scalar(parts, ReduceOp::sum);
}

}  // namespace zl
