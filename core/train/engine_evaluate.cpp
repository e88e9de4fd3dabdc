// Evaluation: the walk of a step's forward without dropout, gradients and recomputation.
#include <cmath>
#include <numeric>

#include "core/ops/elementwise.h"
#include "core/train/engine.h"

namespace zl {

BatchGeometry Engine::evaluation_geometry(const Slot& slot) const {
  BatchGeometry geometry = this->geometry(0);
  geometry.train = false;
  geometry.lengths = slot.lengths;
  return geometry;
}

void Engine::follow_evaluation() {
  std::vector<Visit> visits;
  for (const auto& stage : stages_) {
    const std::vector<Visit> own = stage->evaluation_visits();
    visits.insert(visits.end(), own.begin(), own.end());
  }
  weights_->follow(visits);
}

std::vector<std::vector<float>> Engine::label_logits(const Batch& batch) {
  ZL_CHECK(chunks_.front().forwards == 0, "evaluation comes between steps");
  ZL_CHECK(model_.head == HeadKind::label, "only a model with labels tells them");
  ScopeGuard scope(context_, Phase::other, -1);
  const std::int64_t sequences = strategy_.micro_batch;
  const auto logits_of = [&](DType dtype) {
    return context_.allocate(dtype, {sequences, model_.labels}, MemoryTag::staging,
                             {"label logits"});
  };
  Tensor logits = logits_of(strategy_.precision.compute_dtype), exact = logits_of(DType::f32);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(sequences));
  std::iota(rows.begin(), rows.end(), 0);
  Slot& place = chunks_.front().slots.front();
  upload(place, batch);
  place.micro.geometry = evaluation_geometry(place);
  follow_evaluation();
  stages_.front()->extend(place.micro, rows, logits);
  weights_->follow(schedule().visits(stages_));
  context_.run(Axpy{.x = logits, .y = exact});
  std::vector<float> values(static_cast<std::size_t>(exact.view.count()));
  context_.download(StreamId::compute, values.data(), exact);
  context_.synchronize(StreamId::compute);
  host_batches_.clear();
  std::vector<std::vector<float>> out;
  for (auto row = values.begin(); row != values.end(); row += model_.labels) {
    out.emplace_back(row, row + model_.labels);
  }
  return out;
}

std::vector<double> Engine::summed(const std::vector<double>& values) {
  std::vector<double> sums = values;
  Tensor all = context_.allocate(DType::f64, Shape{static_cast<std::int64_t>(values.size())},
                                 MemoryTag::staging, {"sums over the ranks"});
  context_.upload(StreamId::compute, all, values.data());
  const Segment segment{all, all};
  context_.collective(
      StreamId::compute,
      {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::control, {&segment, 1}, Axis::data});
  context_.download(StreamId::compute, sums.data(), all);
  context_.synchronize(StreamId::compute);
  return sums;
}

Evaluation Engine::evaluate(const Batch& batch) {
  ZL_CHECK(chunks_.front().forwards == 0, "evaluation comes between steps");
  ScopeGuard scope(context_, Phase::other, -1);
  Tensor sums = context_.allocate(DType::f32, Shape{2}, MemoryTag::staging, {"evaluation"});
  const TensorView nll = sums.view.flat(0, 1), rows = sums.view.flat(1, 1);
  context_.run(Fill{nll, 0});
  const std::int64_t counted = is_last(chunks_.back()) ? Objective::counted(batch.targets) : 0;
  context_.run(Fill{rows, static_cast<double>(counted)});
  follow_evaluation();
  Batch own = batch;
  own.step_rows = 0;  // the sum over its own rows
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) evaluate_chunk(chunk, own, nll);
  weights_->follow(schedule().visits(stages_));
  reduce_scalar(sums, ReduceOp::average);
  const double ranks = context_.ranks(Axis::data);
  const Evaluation found{ranks * context_.read(ProbeKind::loss, nll),
                         std::llround(ranks * context_.read(ProbeKind::loss, rows))};
  host_batches_.clear();
  return found;
}

}  // namespace zl
