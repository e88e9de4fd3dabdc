// The changes that could make a strategy fit: higher stage, recomputation, smaller micro-batch with
// more accumulation, offload. Each is a whole strategy, judged by the simulator like any other.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "gui/study.h"

namespace zl::gui {

struct FitCandidate {
  std::string name;                  // of the changed strategy, unique
  std::string json;                  // DeepSpeed form
  std::vector<std::string> changes;  // "ZeRO stage 1 -> 2"
};

// Every combination of changes that this build accepts, the global batch kept.
std::vector<FitCandidate> fit_candidates(const Study& study, const StrategyStudy& strategy);

// The study's document with the candidates as its strategies.
Document fit_document(const Study& study, const std::vector<FitCandidate>& candidates);

// The study's document with the candidate in place of the strategy.
Document with_candidate(const Study& study, const StrategyStudy& strategy,
                        const FitCandidate& candidate);

struct FitAdvice {
  const FitCandidate* candidate = nullptr;
  double step_time = 0;   // seconds
  double price = 0;       // of the step time, relative to the strategy as it is (had it the memory)
  std::int64_t peak = 0;  // device bytes
};

// The candidates that fit, fewest changes first, then the cheapest, without those that another one
// with no more changes beats in both time and memory.
std::vector<FitAdvice> fit_advice(const Study& evaluated, const StrategyStudy& strategy,
                                  const std::vector<FitCandidate>& candidates);

}  // namespace zl::gui
