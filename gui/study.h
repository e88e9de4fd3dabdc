// A scenario evaluated: each strategy recorded, priced, and judged whether it fits.
// Ownership: values; recordings are shared and immutable. Threads: an Evaluator is used by one
// thread; a Study is free to read from any.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gui/document.h"
#include "scenarios/run/simulate.h"
#include "simulator/memory_curve.h"

namespace zl::gui {

struct StrategyStudy {
  ImportedStrategy imported;
  std::shared_ptr<const Recording> recording;
  RunResult result;  // as of unlimited memory when it does not fit; outcome and message then say so
  sim::Timeline timeline;
  std::vector<sim::MemoryPoint> memory;  // device

  const std::string& name() const { return imported.strategy.name; }
  bool fits() const { return result.outcome == Outcome::ok; }
};

struct Study {
  Document document;
  Scenario scenario;
  sim::ClusterSpec cluster;
  std::int64_t budget = 0;  // device bytes of one rank; 0: unlimited
  std::vector<StrategyStudy> strategies;
  int recorded = 0;    // strategies that had to be recorded; the others were only priced again
  double seconds = 0;  // wall clock of the evaluation

  const StrategyStudy* find(const std::string& strategy) const;
};

class Evaluator {
 public:
  // Throws Error for an invalid document; returns null when `cancelled` turned true on the way.
  std::shared_ptr<const Study> evaluate(const Document& document,
                                        const std::atomic<bool>& cancelled);

 private:
  using Shared = std::shared_ptr<const Recording>;
  // The strategy under device.memory (0: unlimited); null when it does not fit or was cancelled.
  Shared record(const Scenario& scenario, const ImportedStrategy& imported,
                const DeviceProperties& device);
  StrategyStudy evaluate_strategy(const Study& study, const ImportedStrategy& imported);

  void evaluate_all(Study& study);

  std::mutex mutex_;  // of the cache and its count: strategies are evaluated side by side
  std::map<std::string, Shared> cache_;  // by what a recording depends on
  const std::atomic<bool>* cancelled_ = nullptr;
  int recorded_ = 0;
};

}  // namespace zl::gui
