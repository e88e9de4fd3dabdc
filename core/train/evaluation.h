// How good a model is on what it does not train on: the loss and the perplexity of a whole source.
// Ownership: a Judge refers to its engine and result. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/data/data_source.h"
#include "core/trace/trace.h"
#include "core/train/engine.h"
#include "core/train/run_result.h"

namespace zl {

// All samples of the source, spread over the data-parallel ranks, without dropout. Every rank calls
// it, with the same source, and gets the same.
Evaluation evaluate_all(Engine& engine, const EvaluationSource& source,
                        std::int64_t sequence_length);

// When a run judges its model.
struct EvaluationPlan {
  std::shared_ptr<const EvaluationSource> source = {};  // null: never
  // Steps between judgements, with one before the first step; 0: only after the last.
  std::int64_t every = 0;
  // Called on every rank, which may use the engine together. `is_best`: no earlier one of the run
  // had a (finite) loss as low.
  std::function<void(Engine&, const EvaluationPoint&, bool is_best)> on_judged = {};
};

// Judges an engine between its steps. What that computes and sends, and what `on_judged` does, is
// in no book of the training, whose trace stays as if nobody had asked; only, under overlap_comm, a
// step need not wait for weights that a judgement has waited for.
class Judge {
 public:
  Judge(const EvaluationPlan& plan, Engine& engine, std::int64_t sequence_length, RunResult& result)
      : plan_(plan), engine_(engine), length_(sequence_length), result_(result) {}

  // Before the first step of a training; a resumed one was judged where it was left.
  void begin();
  // After step `step` of the training. `last`: the run ends with it.
  void after_step(std::int64_t step, bool last);

 private:
  void judge(std::int64_t step);

  const EvaluationPlan& plan_;
  Engine& engine_;
  std::int64_t length_;
  RunResult& result_;
  Trace aside_;  // of the newest judgement, whose last collectives may still run
};

}  // namespace zl
