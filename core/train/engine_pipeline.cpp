// What an engine does for its place in a pipeline: its stages, what they take from others and leave
// for them.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/model/architecture.h"
#include "core/offload/activation_offload.h"
#include "core/ops/elementwise.h"
#include "core/train/engine.h"

namespace zl {

// The rank's stages of the pipeline, each with its share of the recomputation.
void Engine::make_stages() {
  auto& access = static_cast<ParameterAccess&>(*this);
  const int rank = context_.rank(Axis::pipeline);
  for (int chunk = 0; chunk < pipeline_.shape.chunks; ++chunk) {
    const int stage = pipeline_.stage_of(rank, chunk);
    const UnitRange& units = units_[stage];
    const auto layers = static_cast<int>(layers_of(model_, units));
    std::unique_ptr<KeptInputs> kept;
    if (strategy_.offload.activations) {
      kept = std::make_unique<ActivationOffload>(context_, strategy_.offload);
    }
    stages_.push_back(std::make_unique<Stage>(
        context_, access,
        make_units(context_, access, rank_model_, tensor_, table_, units.begin, units.end),
        RecomputePlan(strategy_.recompute, layers, stage), std::move(kept)));
    const auto has = [&](const ParameterSpec& spec) {
      return units.begin <= spec.unit && spec.unit < units.end;
    };
    const auto first = std::ranges::find_if(table_.specs, has);
    const auto end = std::find_if_not(first, table_.specs.end(), has);
    chunks_.push_back({.stage = stage,
                       .last_unit = units.end - 1,
                       .first_parameter = static_cast<int>(first - table_.specs.begin()),
                       .end_parameter = static_cast<int>(end - table_.specs.begin())});
  }
}

// Of the layers and heads that this rank has.
void Engine::make_sparse_attention() {
  if (!strategy_.sparse_attention.is_sparse()) return;
  SparseShare share{.layers = {},
                    .heads = rank_model_.heads,
                    .first_head = tensor_.shard().rank * rank_model_.heads};
  for (const Chunk& chunk : chunks_) {
    const UnitRange& units = units_[chunk.stage];
    const int end = std::min(units.end, static_cast<int>(model_.layers) + 1);
    for (int unit = std::max(units.begin, 1); unit < end; ++unit) share.layers.push_back(unit - 1);
  }
  sparse_ = std::make_unique<SparseAttention>(context_, strategy_.sparse_attention, share,
                                              sequence_length_);
}

void Engine::make_slots() {
  const std::int64_t sequences = strategy_.micro_batch, rows = sequences * sequence_length_;
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    Chunk& own = chunks_[chunk];
    own.slots.resize(schedule().in_flight(static_cast<int>(chunk)));
    for (std::size_t i = 0; i < own.slots.size(); ++i) {
      own.slots[i].micro.slot = static_cast<int>(i);
    }
    if (!is_first(own) && !is_last(own)) continue;
    for (Slot& slot : own.slots) {
      const auto ids = [&](std::int64_t count, const char* what) {
        return context_.allocate(DType::i32, Shape{count}, MemoryTag::staging, {what});
      };
      slot.tokens = ids(rows, "tokens");
      slot.targets = ids(objective_.targets(sequences, sequence_length_), "targets");
      if (model_.segments > 0) slot.segments = ids(rows, "segments");
      if (model_.encoder) slot.lengths = ids(sequences, "lengths");
    }
  }
}

void Engine::take_stream(const Chunk& chunk, int micro, MicroBatch& batch) {
  if (is_first(chunk)) return;
  batch.stream.owned = messages_.take({chunk.stage, micro, true});
  batch.stream.x = batch.stream.owned;
}

void Engine::leave_stream(const Chunk& chunk, int micro, MicroBatch& batch) {
  if (is_last(chunk)) return;
  messages_.hand_over({chunk.stage + 1, micro, true},
                      merged(context_, std::exchange(batch.stream, {}), batch.geometry,
                             model_.dropout, chunk.last_unit));
}

// A rank's first message comes before its first forward.
void Engine::exchange(const Instruction& instruction) {
  enter_step();
  pass_message(instruction);
}

void Engine::pass_message(const Instruction& instruction) {
  const int stage = chunks_[instruction.chunk].stage, micro = instruction.micro;
  ScopeGuard scope(context_, Phase::other, -1, micro, instruction.chunk);
  const DType dtype = strategy_.precision.compute_dtype;
  const std::int64_t rows = geometry(micro).stream_rows();
  switch (instruction.kind) {
    case InstructionKind::receive_stream:
      return messages_.receive({stage, micro, true}, dtype, rows, model_.hidden);
    case InstructionKind::receive_gradient:
      return messages_.receive({stage, micro, false}, dtype, rows, model_.hidden);
    case InstructionKind::send_stream:
      return messages_.send({stage + 1, micro, true});
    case InstructionKind::send_gradient:
      return messages_.send({stage - 1, micro, false});
    case InstructionKind::release_stream:
      return messages_.release({stage + 1, micro, true});
    case InstructionKind::release_gradient:
      return messages_.release({stage - 1, micro, false});
    default:
      ZL_CHECK(false, "load, forward and backward have calls of their own");
  }
}

// First stage plus last stage, on both: each rank has the same chunk of it.
void Engine::add_tied_gradients() {
  const bool embeds = table_.token_embedding >= 0;
  if (!model_.ties_head() || table_.tied() || (!embeds && !has_tied_copy())) return;
  Tensor own = on_device(embeds ? table_.token_embedding : table_.head);
  if (embeds && has_tied_copy()) {
    Tensor head = on_device(table_.head);
    context_.run(Axpy{.x = head, .y = own, .accumulate = true});
    context_.run(Axpy{.x = own, .y = head});
    put_back(table_.head, head);
    return put_back(table_.token_embedding, own);
  }
  Tensor other = context_.allocate(own.view.dtype, own.view.shape, MemoryTag::communication,
                                   {"gradient of the other stage"});
  const int peer = pipeline_.rank_of(embeds ? pipeline_.stages() - 1 : 0);
  const Message both[] = {{.peer = peer, .sends = true, .tensor = own},
                          {.peer = peer, .sends = false, .tensor = other}};
  context_.exchange(StreamId::compute, Axis::pipeline, both);
  context_.run(Axpy{.x = other, .y = own, .accumulate = true});
  put_back(embeds ? table_.token_embedding : table_.head, own);
}

// What this rank has of a gradient: its part of the average, or all of its own; a copy of it, where
// it lives on the host.
Tensor Engine::on_device(int parameter) {
  HostGradients* host = gradients_->host();
  if (!averages_gradients()) return {{}, partition_.padded(gradients_->local(), parameter)};
  if (host == nullptr || !host->holds(parameter)) return {{}, gradients_->owned(parameter)};
  const TensorView there = host->owned(parameter);
  Tensor here = context_.allocate(there.dtype, there.shape, MemoryTag::communication,
                                  {"gradient from the host"});
  host->arrive();
  context_.wait(StreamId::compute, context_.record(StreamId::host));
  context_.copy(StreamId::compute, Route::host_to_device, here, there);
  return here;
}

void Engine::put_back(int parameter, const Tensor& gradient) {
  HostGradients* host = gradients_->host();
  if (host == nullptr || !host->holds(parameter)) return;
  context_.copy(StreamId::compute, Route::device_to_host, host->owned(parameter), gradient);
  context_.wait(StreamId::host, context_.record(StreamId::compute));
}

// Stage by stage: a chunk takes its stream, and the ranks behind wait for it.
void Engine::evaluate_chunk(std::size_t chunk, const Batch& batch, const TensorView& nll) {
  Chunk& own = chunks_[chunk];
  Slot& place = own.slots.front();
  if (is_first(own) || is_last(own)) upload(place, batch);
  place.micro.geometry = evaluation_geometry(place);
  place.micro.loss.sum = nll;
  place.micro.loss.weight = place.micro.loss.counted_rows;
  const auto remote = [&](int stage) {
    return pipeline_.rank_of(stage) != context_.rank(Axis::pipeline);
  };
  const int index = static_cast<int>(chunk);
  if (!is_first(own) && remote(own.stage - 1)) {
    pass_message({InstructionKind::receive_stream, 0, index});
  }
  take_stream(own, 0, place.micro);
  stages_[chunk]->evaluate(place.micro);
  leave_stream(own, 0, place.micro);
  if (is_last(own) || !remote(own.stage + 1)) return;
  pass_message({InstructionKind::send_stream, 0, index});
  pass_message({InstructionKind::release_stream, 0, index});
}

}  // namespace zl
