// How good a model is on what it does not train on: the loss and the perplexity of a whole source.
// Ownership: a Judge refers to its engine and result. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

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
  // What the source is of: judgements of a resumed run compare with those of the same data alone.
  std::string data = {};
  // Steps between judgements, with one before the first step; 0: only after the last.
  std::int64_t every = 0;
  // Called on every rank, which may use the engine together. `is_best`: no earlier one of the
  // training, which a resumed run goes on with, had a (finite) loss as low.
  std::function<void(Engine&, const EvaluationPoint&, bool is_best)> on_judged = {};
  // Called likewise after the last judgement, where `best` is of before the run was resumed.
  std::function<void(Engine&, const EvaluationPoint& best)> on_none_better = {};
};

// Judges an engine between its steps. What that computes and sends, and what `on_judged` does, is
// in no book of the training, whose trace stays as if nobody had asked; only, under overlap_comm, a
// step need not wait for weights that a judgement has waited for.
class Judge {
 public:
  Judge(const EvaluationPlan& plan, Engine& engine, std::int64_t sequence_length, RunResult& result)
      : plan_(plan), engine_(engine), length_(sequence_length), result_(result) {}

  // The best so far, in words: what a checkpoint keeps of the judgements; empty: there is none.
  std::string best() const;
  // Of a run that goes on with a checkpoint, what that kept: the best is judged from there, if it
  // is of the same data. A run without judgements hands it on.
  void resume(const std::string& best);

  // Before the first step of a training; a resumed one was judged where it was left.
  void begin();
  // After step `step` of the training. `last`: the run ends with it.
  void after_step(std::int64_t step, bool last);

 private:
  void judge(std::int64_t step, bool last);
  std::string words_of(const EvaluationPoint& point) const;

  const EvaluationPlan& plan_;
  Engine& engine_;
  std::int64_t length_;
  RunResult& result_;
  std::string kept_;  // by the checkpoint that the run goes on with
  Trace aside_;       // of the newest judgement, whose last collectives may still run
};

}  // namespace zl
