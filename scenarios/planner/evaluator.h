// Turns documents into studies, and remembers what was recorded for the next one.
// Ownership: owns its recordings together with the studies that show them. Threads: used by one
// thread at a time; it evaluates strategies side by side itself.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "scenarios/planner/study.h"
#include "scenarios/run/judge.h"

namespace zl {

class Evaluator {
 public:
  // Throws Error for an invalid document; returns null when `cancelled` turned true on the way.
  std::shared_ptr<const Study> evaluate(const Document& document,
                                        const std::atomic<bool>& cancelled);

 private:
  // judge()'s verdict on the strategy, or the one that was kept.
  Verdict verdict_on(const Scenario& scenario, const ImportedStrategy& strategy,
                     const DeviceProperties& device);
  StrategyStudy evaluate_strategy(const Study& study, const ImportedStrategy& imported);
  void evaluate_all(Study& study);

  std::mutex mutex_;  // of the cache and its count: strategies are evaluated side by side
  std::map<std::string, Verdict> cache_;  // by what a recording depends on
  const std::atomic<bool>* cancelled_ = nullptr;
  int recorded_ = 0;
};

}  // namespace zl
