// In which order a stage works on the micro-batches of a step: pure data, made and tested without a
// device, run by one executor (train/executor.h) and read by prefetchers.
// Ownership: a value. Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/stage.h"

namespace zl {

enum class InstructionKind : std::uint8_t {
  load,      // the ids of a micro-batch to the device
  forward,   // keeps what the backward needs
  backward,  // begins with the loss, where the stage ends the model
};

struct Instruction {
  InstructionKind kind = InstructionKind::load;
  int micro = 0;  // which micro-batch of the body

  bool operator==(const Instruction&) const = default;
};

// What comes before one update: the body, of `micro_batches` micro-batches, `repeats` times over.
struct Schedule {
  std::vector<Instruction> body;
  int micro_batches = 1;
  int repeats = 1;

  // The most micro-batches between their load and the end of their backward at any moment.
  int in_flight() const;
  // What the body enters, in order.
  std::vector<Visit> visits(const Stage& stage) const;
};

// One micro-batch after the other, forward and backward: a rank that holds the whole model.
Schedule whole_model_schedule(std::int64_t gradient_accumulation);

}  // namespace zl
