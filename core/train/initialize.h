// The entry point of a program that uses zerolab as a library: initialize(), then forward(),
// backward() and step() on every rank. Ownership: a Session owns the rank's context and engine and
// refers to the device and communicator. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/device/communicator.h"
#include "core/device/device.h"
#include "core/device/rank_context.h"
#include "core/model/model_config.h"
#include "core/train/strategy.h"
#include "core/zero/engine.h"

namespace zl {

struct InitializeOptions {
  std::int64_t sequence_length = 0;  // tokens per row; 0: the model's max_sequence
  std::uint64_t seed = 0;            // of the initial weights and of dropout
  std::int64_t device_memory = 0;    // bytes; 0: no budget
  // Keep every op, collective and allocation in context().trace(); it grows with every step.
  bool record_trace = false;
};

class Session {
 public:
  Session(const ModelConfig& model, const Strategy& strategy, Device& device,
          Communicator& communicator, const InitializeOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // One micro-batch of this rank: tokens and targets hold micro_batch * sequence_length ids, row by
  // row; a target of -1 is ignored.
  void forward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
    engine_.forward(tokens, targets);
  }
  void backward() { engine_.backward(); }
  // After gradient_accumulation micro-batches: reduce, clip, update. The metrics are the same on
  // every rank.
  StepMetrics step() { return engine_.step(); }
  // Mean loss of this rank's micro-batch without training.
  double evaluate(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
    return engine_.evaluate(tokens, targets);
  }

  Engine& engine() { return engine_; }
  RankContext& context() { return context_; }

 private:
  RankContext context_;
  Engine engine_;
};

// Builds the model with its initial weights, cut as the strategy's ZeRO stage says. Every rank of
// `world` calls it with equal arguments on its own thread (see World::run). `model` need not be
// complete()d. Throws Error{invalid} on a model or strategy that cannot run, OutOfMemory when the
// state does not fit.
std::unique_ptr<Session> initialize(ModelConfig model, const Strategy& strategy, Device& device,
                                    Communicator& world, const InitializeOptions& options = {});

}  // namespace zl
