// The backward of an engine's stages, whole or in halves.
#include <utility>

#include "core/base/error.h"
#include "core/train/engine.h"

namespace zl {

// before: gradients of this kind that the chunk has made in this step.
void Engine::begin_gradients(int before) {
  gradients_->set_averaging(averages_gradients());
  gradients_->begin_micro_batch(before == 0, before + 1 == strategy_.gradient_accumulation);
}

// completes: no half of the micro-batch's backward is left.
void Engine::end_gradients(Chunk& own, bool completes) {
  gradients_->end_micro_batch();
  if (!completes || ++own.weight_gradients < strategy_.gradient_accumulation) return;
  gradients_->end_stage(own.first_parameter, own.end_parameter);
}

void Engine::run_backward(int micro, Chunk& own, std::size_t chunk,
                          void (Stage::*half)(MicroBatch&)) {
  ScopeGuard scope(context_, Phase::backward, -1, micro, static_cast<int>(chunk));
  begin_gradients(own.backwards);
  MicroBatch& batch = own.slot(micro).micro;
  if (!is_last(own)) batch.gradient = messages_.take({own.stage, micro, false});
  (*stages_[chunk].*half)(batch);
  Tensor gradient = std::exchange(batch.gradient, {});
  if (!is_first(own)) messages_.hand_over({own.stage - 1, micro, false}, std::move(gradient));
  ++own.backwards;
  end_gradients(own, half == &Stage::backward);
}

void Engine::backward(int micro, int chunk) {
  Chunk& own = chunks_[chunk];
  ZL_CHECK(own.weight_gradients == own.backwards, "a whole backward leaves no half behind");
  run_backward(micro, own, static_cast<std::size_t>(chunk), &Stage::backward);
}

void Engine::input_gradient(int micro, int chunk) {
  run_backward(micro, chunks_[chunk], static_cast<std::size_t>(chunk), &Stage::input_gradient);
}

void Engine::weight_gradient(int micro, int chunk) {
  Chunk& own = chunks_[chunk];
  ZL_CHECK(own.weight_gradients < own.backwards, "the input's gradient comes first");
  ScopeGuard scope(context_, Phase::weight_gradient, -1, micro, chunk);
  begin_gradients(own.weight_gradients);
  stages_[chunk]->weight_gradient(own.slot(micro).micro);
  end_gradients(own, true);
}

}  // namespace zl
