// Turns documents into studies, and remembers what was recorded for the next one.
// Ownership: owns its recordings together with the studies that show them. Threads: used by one
// thread at a time; it evaluates strategies side by side itself.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "scenarios/planner/study.h"
#include "scenarios/run/judge.h"

namespace zl {

class Evaluator {
 public:
  // Throws Error for an invalid document; returns null when `cancelled` turned true on the way.
  std::shared_ptr<const Study> evaluate(const Document& document,
                                        const std::atomic<bool>& cancelled);

 private:
  // What does not depend on how fast the cluster is.
  struct Judged {
    // Without limits where it does not fit; null: cancelled.
    std::shared_ptr<const Recording> recording;
    MemoryNeed need;
    std::string refusal;                            // why it does not fit; empty: it does
    std::shared_ptr<const SoftwareBytes> software;  // null: not known
  };
  // Where it comes from is not written yet.
  struct Priced {
    sim::ClusterSpec cluster;
    RunResult result;
    std::shared_ptr<const std::vector<sim::Timeline>> timelines;
  };
  // Of a strategy within limits.
  struct Kept {
    std::shared_ptr<const Judged> judged;
    std::vector<std::shared_ptr<const Priced>> prices;  // of several clusters, the newest last
  };

  std::shared_ptr<const Recording> record(const Scenario& scenario,
                                          const ImportedStrategy& imported,
                                          const DeviceProperties& device);
  Judged judge_strategy(const Scenario& scenario, const ImportedStrategy& imported,
                        const DeviceProperties& device);
  std::shared_ptr<const Priced> price(const Study& study, const Judged& judged);
  Kept kept(const std::string& key);
  void keep(const std::string& key, const Kept& known, std::shared_ptr<const Priced> priced);
  StrategyStudy evaluate_strategy(const Study& study, const ImportedStrategy& imported);
  void evaluate_all(Study& study);

  std::mutex mutex_;  // of what is kept: strategies are evaluated side by side
  // By what a recording depends on: those without limits, and what was found out within them.
  std::map<std::string, std::shared_ptr<const Recording>> recordings_;
  std::map<std::string, Kept> kept_;
  const std::atomic<bool>* cancelled_ = nullptr;
  std::atomic<int> recorded_ = 0, priced_ = 0;
};

}  // namespace zl
