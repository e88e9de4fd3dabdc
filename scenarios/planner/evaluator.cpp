#include "scenarios/planner/evaluator.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>

#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/strategy_json.h"
#include "scenarios/planner/shortage.h"
#include "scenarios/run/resolve_recompute.h"
#include "scenarios/run/runner.h"

namespace zl {
namespace {

// Of so many strategies something is kept, of each on so many clusters; a gigantic trace is some
// tens of megabytes.
constexpr std::size_t kMostKept = 48;
constexpr std::size_t kMostPrices = 4;

void forget_unseen(Scenario& scenario) {
  const RunSettings defaults;
  const bool reads_texts = scenario.model.head != HeadKind::next_token;
  visit_run_keys([&](const RunKey& key, auto member, auto...) {
    using enum RunKey::Recorded;
    const bool seen = key.recorded == yes || (key.recorded == of_texts && reads_texts);
    if (!seen) scenario.run.*member = defaults.*member;
  });
}

// What a recording depends on: nothing of the cluster but what the program sees of it, and the
// limits.
std::string key_of(const Scenario& scenario, const ImportedStrategy& strategy,
                   const DeviceProperties& device) {
  Scenario one = with_one_strategy(scenario, strategy);
  forget_unseen(one);
  one.name = decided_recompute_text(strategy.strategy.recompute);  // "auto" in the JSON
  one.cluster = std::to_string(device.workspace) + " " + std::to_string(device.host_memory) +
                (device.memory_is_host ? " shared" : "");
  one.cluster_json.clear();
  one.run.device_memory = device.memory;
  return canonical_json(one);
}

ProgramOptions options_of(const Scenario& scenario, const std::atomic<bool>& cancelled) {
  ProgramOptions options = program_options(scenario);
  options.stop = &cancelled;
  options.hash_trace = false;
  return options;
}

}  // namespace

// Recorded without limits, so that there is something to show of what does not fit either.
std::shared_ptr<const Recording> Evaluator::record(const Scenario& scenario,
                                                   const ImportedStrategy& imported,
                                                   const DeviceProperties& device) {
  Scenario boundless = scenario;
  boundless.run.host_memory = 0;
  DeviceProperties unlimited = device;
  unlimited.memory = unlimited.host_memory = 0;
  const std::string key = key_of(boundless, imported, unlimited);
  {
    const std::lock_guard lock(mutex_);
    const auto found = recordings_.find(key);
    if (found != recordings_.end()) return found->second;
  }
  ++recorded_;
  Verdict verdict =
      judge(boundless, imported.strategy, unlimited, options_of(boundless, *cancelled_));
  if (*cancelled_) return nullptr;  // it may have ended early
  const std::lock_guard lock(mutex_);
  if (recordings_.size() >= kMostKept) recordings_.clear();
  return recordings_[key] = std::move(verdict.recording);
}

// Recorded again within the limits only where the recording without leaves open what judge() says.
Evaluator::Judged Evaluator::judge_strategy(const Scenario& scenario,
                                            const ImportedStrategy& imported,
                                            const DeviceProperties& device) {
  ImportedStrategy resolved = imported;
  resolved.strategy = resolve_recompute(scenario, imported.strategy, device);
  const DeviceVerdict first = judge_device(scenario, resolved.strategy, device);
  Judged out{record(scenario, resolved, device), first.need, first.refusal, nullptr};
  if (first.bytes) out.software = std::make_shared<const SoftwareBytes>(*first.bytes);
  if (!out.recording || !out.refusal.empty()) return out;
  const std::optional<bool> known =
      foreseen(out.recording->books, first.of_pools, scenario.run.host_memory);
  if (known.value_or(false)) return out;
  Verdict verdict;
  if (!known) {
    ++recorded_;
    verdict = judge(scenario, resolved.strategy, device, options_of(scenario, *cancelled_));
    if (*cancelled_) return {};
    if (verdict.fits()) return {std::move(verdict.recording), {}, {}, out.software};
  }
  out.need = memory_need(*out.recording);
  out.refusal =
      known ? shortage_text(*out.recording, first.of_pools, scenario.run.host_memory, out.need)
            : verdict.refusal;
  return out;
}

std::shared_ptr<const Evaluator::Priced> Evaluator::price(const Study& study,
                                                          const Judged& judged) {
  ++priced_;
  auto out = std::make_shared<Priced>();
  auto timelines = std::make_shared<std::vector<sim::Timeline>>();
  out->cluster = study.cluster;
  out->result = price_run(study.scenario, *judged.recording, study.cluster, timelines.get());
  out->timelines = std::move(timelines);
  if (judged.software) out->result.software_held = judged.software->of_device();
  out->result.device_capacity = study.budget;
  if (judged.refusal.empty()) return out;
  out->result.outcome = Outcome::out_of_memory;
  out->result.need = judged.need;
  out->result.message = judged.refusal;
  return out;
}

Evaluator::Kept Evaluator::kept(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = kept_.find(key);
  return found == kept_.end() ? Kept() : found->second;
}

void Evaluator::keep(const std::string& key, const Kept& known,
                     std::shared_ptr<const Priced> priced) {
  const std::lock_guard lock(mutex_);
  if (kept_.size() >= kMostKept && !kept_.contains(key)) kept_.clear();
  Kept& kept = kept_[key] = known;
  if (kept.prices.size() >= kMostPrices) kept.prices.erase(kept.prices.begin());
  kept.prices.push_back(std::move(priced));
}

// What was priced on this very cluster is as it was: an edit of a strategy or of the seed prices
// nothing of the others.
StrategyStudy Evaluator::evaluate_strategy(const Study& study, const ImportedStrategy& imported) {
  const DeviceProperties device = simulated_device(study.scenario, study.cluster);
  // Recordings are the same under every software, what fits is not.
  const std::string key =
      key_of(study.scenario, imported, device) + scenario_software(study.scenario);
  Kept known = kept(key);
  if (!known.judged) {
    Judged judged = judge_strategy(study.scenario, imported, device);
    if (!judged.recording) return {};
    known.judged = std::make_shared<const Judged>(std::move(judged));
  }
  const auto found = std::ranges::find_if(
      known.prices, [&](const auto& each) { return each->cluster == study.cluster; });
  const auto priced = found != known.prices.end() ? *found : price(study, *known.judged);
  if (found == known.prices.end()) keep(key, known, priced);
  StrategyStudy out{imported, known.judged->recording, known.judged->software, priced->result,
                    priced->timelines};
  write_origin(study.scenario, imported, "sim", out.result);
  return out;
}

// Side by side on the machine's cores; the first error in the order of the strategies is thrown.
void Evaluator::evaluate_all(Study& study) {
  const std::size_t count = study.scenario.strategies.size();
  study.strategies.resize(count);
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t begun = next++; begun < count && !*cancelled_; begun = next++) {
      const std::size_t i = count - 1 - begun;  // the last take longest: gathers, recomputation
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
  recorded_ = priced_ = 0;
  auto study = std::make_shared<Study>();
  study->document = document;
  study->scenario = scenario_from_json(document.text(), document.source());
  study->cluster = scenario_cluster(study->scenario);
  study->budget = memory_budget(study->scenario, study->cluster);
  evaluate_all(*study);
  if (cancelled) return nullptr;
  study->recorded = recorded_;
  study->priced = priced_;
  study->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return study;
}

}  // namespace zl
