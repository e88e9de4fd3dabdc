// In which order a stage works on the micro-batches of a step: pure data, made and tested without a
// device, run by one executor (train/executor.h) and read by prefetchers.
// Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/model/stage.h"
#include "core/pipeline/pipeline.h"

namespace zl {

enum class InstructionKind : std::uint8_t {
  load,      // the ids of a micro-batch to the device
  forward,   // keeps what the backward needs
  backward,  // begins with the loss, where the stage ends the model
  // Its halves: what the stage before waits for, and the rest (Stage::input_gradient).
  input_gradient,
  weight_gradient,
  // Between ranks. What a chunk takes, from the rank of the stage before (forward) or behind.
  receive_stream,
  receive_gradient,
  // What it made, to the rank of the stage behind (forward) or before; and its buffer free again.
  send_stream,
  send_gradient,
  release_stream,
  release_gradient,
};

struct Instruction {
  InstructionKind kind = InstructionKind::load;
  int micro = 0;  // which micro-batch of the body
  int chunk = 0;  // of the rank

  bool operator==(const Instruction&) const = default;
};

// Whether that ends the backward of a micro-batch.
bool ends_backward(InstructionKind kind);

// The part of a body that is one round of `length` instructions over and over.
struct SteadyPart {
  std::size_t first = 0, length = 0;  // of the body
  std::size_t rounds = 0;
  int step = 0;      // micro-batches from one round to the next
  int left_out = 0;  // rounds that the body leaves out before the last (pipeline_rounds.h)

  bool operator==(const SteadyPart&) const = default;
};

// What comes before one update: the body, of `micro_batches` micro-batches, `repeats` times over.
struct Schedule {
  std::vector<Instruction> body;
  int micro_batches = 1;
  int repeats = 1;
  SteadyPart steady = {};

  // The most micro-batches of a chunk between their forward and the end of their backward at any
  // moment.
  int in_flight(int chunk = 0) const;
  // What the body enters, in order. stages: of each chunk.
  std::vector<Visit> visits(std::span<const std::unique_ptr<Stage>> stages) const;
};

// One micro-batch after the other, forward and backward: a rank that holds the whole model.
Schedule whole_model_schedule(std::int64_t gradient_accumulation);

// What each rank of a pipeline does, its messages among it. All messages of all ranks lie in one
// order, that of a run in unit times, and each rank's own come in it: so they may travel in order,
// one at a time, and nobody waits in a circle. A buffer that was sent is released two messages of
// its kind later. Of work that is overlapped, the one comes after the other.
std::vector<Schedule> pipeline_schedules(const Pipeline& pipeline);

}  // namespace zl
