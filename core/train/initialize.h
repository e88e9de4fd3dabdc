// The library's front door: initialize(model, strategy, device, world), then forward, backward,
// step. Ownership: a Session owns the rank's context and engine; the device and communicator must
// outlive it. Threads: a Session is used by its rank's thread; every rank makes the same calls.
#pragma once

#include <memory>

#include "core/train/engine.h"

namespace zl {

struct SessionOptions {
  std::int64_t sequence_length = 0;  // 0: the model's max_sequence
  std::uint64_t seed = 0;
  const WeightSource* weights = nullptr;  // read once, by initialize(); null: drawn by the seed
  std::int64_t device_memory = 0;         // bytes; 0: no budget
};

class Session {
 public:
  Session(Device& device, Communicator& world, const ModelConfig& model, const Strategy& strategy,
          const SessionOptions& options);

  // One micro-batch of this rank, [micro_batch, sequence_length] ids each, row by row.
  void forward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
    engine_->forward(tokens, targets);
  }
  void backward() { engine_->backward(); }
  // After gradient_accumulation forward/backward pairs.
  StepMetrics step() { return engine_->step(); }

  Engine& engine() { return *engine_; }
  RankContext& context() { return *context_; }  // ledger and rank; the trace is not recorded
  std::int64_t sequence_length() const { return sequence_length_; }

 private:
  std::int64_t sequence_length_;
  std::unique_ptr<RankContext> context_;
  std::unique_ptr<Engine> engine_;
};

// Throws Error{invalid} on a model or strategy that cannot run, OutOfMemory when its state does not
// fit.
Session initialize(ModelConfig model, const Strategy& strategy, Device& device, Communicator& world,
                   const SessionOptions& options = {});

}  // namespace zl
