#include "scenarios/planner/evaluator.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/planner/shortage.h"
#include "scenarios/run/resolve_recompute.h"
#include "scenarios/run/runner.h"

namespace zl {
namespace {

// Recordings of this many strategies are kept; a gigantic trace is some tens of megabytes.
constexpr std::size_t kKept = 48;

// What a recording depends on: nothing of the cluster but what the program sees of it, and the
// limits.
std::string key_of(const Scenario& scenario, const ImportedStrategy& strategy,
                   const DeviceProperties& device) {
  Scenario one = with_one_strategy(scenario, strategy);
  one.name = std::to_string(strategy.strategy.recompute.blocks);  // "auto" in the JSON
  one.cluster = std::to_string(device.workspace) + " " + std::to_string(device.host_memory) +
                (device.memory_is_host ? " shared" : "");
  one.cluster_json.clear();
  one.run.device_memory = device.memory;
  return canonical_json(one);
}

}  // namespace

Verdict Evaluator::verdict_on(const Scenario& scenario, const ImportedStrategy& imported,
                              const DeviceProperties& device) {
  const std::string key = key_of(scenario, imported, device);
  {
    const std::lock_guard lock(mutex_);
    const auto found = cache_.find(key);
    if (found != cache_.end()) return found->second;
    if (cache_.size() >= kKept) cache_.clear();
    ++recorded_;
  }
  ProgramOptions options = program_options(scenario);
  options.stop = cancelled_;
  Verdict verdict = judge(scenario, imported.strategy, device, options);
  if (*cancelled_) return {};  // it may have ended early
  const std::lock_guard lock(mutex_);
  return cache_[key] = std::move(verdict);
}

// Recorded without limits, so that there is something to show of what does not fit either; again
// within them only where that recording leaves open what judge() says.
StrategyStudy Evaluator::evaluate_strategy(const Study& study, const ImportedStrategy& imported) {
  const Scenario& scenario = study.scenario;
  const DeviceProperties device = simulated_device(scenario, study.cluster);
  StrategyStudy out;
  out.imported = imported;
  ImportedStrategy resolved = imported;
  resolved.strategy = resolve_recompute(scenario, imported.strategy, device);
  Scenario boundless = scenario;
  boundless.run.host_memory = 0;
  DeviceProperties unlimited = device;
  unlimited.memory = unlimited.host_memory = 0;
  out.recording = verdict_on(boundless, resolved, unlimited).recording;
  if (!out.recording) return out;  // cancelled
  const std::optional<bool> known =
      foreseen(out.recording->books, device, scenario.run.host_memory);
  const Verdict verdict = known ? Verdict() : verdict_on(scenario, resolved, device);
  if (verdict.fits()) out.recording = verdict.recording;
  out.result = price_run(scenario, *out.recording, study.cluster, &out.timelines);
  out.memory =
      sim::memory_over_time(out.recording->trace, out.timeline().events, MemorySpace::device);
  write_origin(scenario, imported, "sim", out.result);
  out.result.device_capacity = study.budget;
  if (known.value_or(verdict.fits())) return out;
  out.result.outcome = Outcome::out_of_memory;
  out.result.need = memory_need(boundless, resolved.strategy, device, program_options(boundless),
                                out.recording->books);
  out.result.message = known ? shortage_text(*out.recording, out.memory, device,
                                             scenario.run.host_memory, out.result.need)
                             : verdict.refusal;
  return out;
}

// Side by side on the machine's cores; the first error in the order of the strategies is thrown.
void Evaluator::evaluate_all(Study& study) {
  const std::size_t count = study.scenario.strategies.size();
  study.strategies.resize(count);
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count && !*cancelled_; i = next++) {
      try {
        study.strategies[i] = evaluate_strategy(study, study.scenario.strategies[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  std::vector<std::jthread> helpers;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  while (helpers.size() + 1 < std::min(count, cores)) helpers.emplace_back(work);
  work();
  helpers.clear();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

std::shared_ptr<const Study> Evaluator::evaluate(const Document& document,
                                                 const std::atomic<bool>& cancelled) {
  const auto start = std::chrono::steady_clock::now();
  cancelled_ = &cancelled;
  recorded_ = 0;
  auto study = std::make_shared<Study>();
  study->document = document;
  study->scenario = scenario_from_json(document.text(), document.source());
  study->cluster = scenario_cluster(study->scenario);
  study->budget = memory_budget(study->scenario, study->cluster);
  evaluate_all(*study);
  if (cancelled) return nullptr;
  study->recorded = recorded_;
  study->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return study;
}

}  // namespace zl
