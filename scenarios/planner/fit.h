// The changes that could make a strategy fit: higher stage, recomputation, smaller micro-batch with
// more accumulation, offload, another mesh. Each is a whole strategy, judged by the simulator like
// any other. Ownership: values. Threads: pure functions.
#pragma once

#include <vector>

#include "scenarios/planner/variation.h"

namespace zl {

// Every combination of changes that this build accepts, the global batch kept; a mesh is combined
// with recomputation and micro-batch only.
std::vector<Variation> fit_candidates(const Study& study, const StrategyStudy& strategy);

// The study's document with the candidates as its strategies.
Document fit_document(const Study& study, const std::vector<Variation>& candidates);

struct FitAdvice {
  const Variation* candidate = nullptr;
  double step_time = 0;  // seconds
  double price = 0;      // of the step time, relative to the strategy as it is (had it the memory)
  std::int64_t peak = 0, reserved = 0;  // device bytes of a rank: in use, and what must be there
  Fits fits = Fits::yes;                // or maybe
};

// The candidates that fit or may, fewest changes first, then the surer, then the cheapest, without
// those that another one with no more changes beats in both time and memory.
std::vector<FitAdvice> fit_advice(const Study& evaluated, const StrategyStudy& strategy,
                                  const std::vector<Variation>& candidates);

}  // namespace zl
