// What goes between the stages of a pipeline: a micro-batch's stream forward, its gradient back.
// Messages travel in the order of the calls on the communication stream; between stages of one rank
// a tensor is handed over.
// Ownership: owns tensors between their receive and their take, and between hand-over and release;
// refers to the context and the pipeline. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>

#include "core/pipeline/pipeline.h"
#include "core/rank/rank_context.h"

namespace zl {

// By the stage that takes it.
struct StageMessage {
  int stage = 0;
  int micro = 0;
  bool forward = false;

  bool operator<(const StageMessage& other) const {
    return std::tie(stage, micro, forward) < std::tie(other.stage, other.micro, other.forward);
  }
};

class StageMessages {
 public:
  StageMessages(RankContext& context, const Pipeline& pipeline)
      : context_(context), pipeline_(pipeline) {}

  // Begins to receive [rows, hidden].
  void receive(const StageMessage& message, DType dtype, std::int64_t rows, std::int64_t hidden);
  // What arrived or was handed over; the compute stream waits for it.
  Tensor take(const StageMessage& message);
  // What this rank made: waits here for its stage of this rank, or for its send.
  void hand_over(const StageMessage& message, Tensor tensor);
  void send(const StageMessage& message);
  // The compute stream waits until it was taken, and its buffer is free.
  void release(const StageMessage& message);
  // What is on its way counts as of so many micro-batches later.
  void skip(int micro_batches);

 private:
  struct Held {
    Tensor tensor;
    EventId made = -1;   // of the compute stream, by this rank
    EventId event = -1;  // of the communication stream; -1: none
  };
  void exchange(int peer, bool sends, const TensorView& tensor);

  RankContext& context_;
  const Pipeline& pipeline_;
  std::map<StageMessage, Held> held_;
};

}  // namespace zl
