#include "gui/study.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "core/base/bytes.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/run/resolve_recompute.h"
#include "scenarios/run/runner.h"

namespace zl::gui {
namespace {

// Recordings of this many strategies are kept; a gigantic trace is some tens of megabytes.
constexpr std::size_t kKept = 48;

// What a recording depends on: nothing of the cluster but what the program sees of it.
std::string key_of(const Scenario& scenario, const ImportedStrategy& strategy,
                   const DeviceProperties& device) {
  Scenario one = with_one_strategy(scenario, strategy);
  one.name = std::to_string(strategy.strategy.recompute.blocks);  // "auto" in the JSON
  one.cluster = std::to_string(device.workspace) + " " + std::to_string(device.host_memory);
  one.cluster_json.clear();
  one.run.device_memory = device.memory;
  return canonical_json(one);
}

std::string shortage_text(const Recording& recording, const std::vector<sim::MemoryPoint>& curve,
                          std::int64_t budget) {
  const std::int64_t needed = recording.books.peak_device.total();
  std::string text = "needs " + format_bytes(needed) + " at its peak, " +
                     format_bytes(needed - budget) + " more than the " + format_bytes(budget) +
                     " of the device";
  const auto peak = sim::peak_point(curve);
  if (peak < 0) return text;
  const std::int32_t event = curve[static_cast<std::size_t>(peak)].event;
  std::map<std::string, std::int64_t> holders;
  for (const auto& block : sim::live_after(recording.trace, event, MemorySpace::device)) {
    holders[std::string(name_of(block.tag)) + " '" + block.what + "'"] += block.bytes;
  }
  std::vector<std::pair<std::string, std::int64_t>> sorted(holders.begin(), holders.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < std::min<std::size_t>(3, sorted.size()); ++i) {
    text +=
        (i == 0 ? "; largest: " : ", ") + sorted[i].first + " " + format_bytes(sorted[i].second);
  }
  return text;
}

std::string host_shortage_text(std::int64_t needed, std::int64_t share) {
  return "needs " + format_bytes(needed) + " of its machine's memory, of which a rank has " +
         format_bytes(share);
}

bool within(std::int64_t bytes, std::int64_t limit) { return limit == 0 || bytes <= limit; }

}  // namespace

const StrategyStudy* Study::find(const std::string& strategy) const {
  for (const StrategyStudy& each : strategies) {
    if (each.name() == strategy) return &each;
  }
  return nullptr;
}

Evaluator::Shared Evaluator::record(const Scenario& scenario, const ImportedStrategy& imported,
                                    const DeviceProperties& device) {
  const std::string key = key_of(scenario, imported, device);
  {
    const std::lock_guard lock(mutex_);
    const auto found = cache_.find(key);
    if (found != cache_.end()) return found->second;
    if (cache_.size() >= kKept) cache_.clear();
    ++recorded_;
  }
  const auto keep = [&](Shared recording) {
    const std::lock_guard lock(mutex_);
    return cache_[key] = std::move(recording);
  };
  ProgramOptions options = program_options(scenario);
  options.stop = cancelled_;
  try {
    auto recording =
        std::make_shared<Recording>(record_run(scenario, imported.strategy, device, options));
    if (*cancelled_) return nullptr;
    return keep(std::move(recording));
  } catch (const OutOfMemory&) {
    return keep(nullptr);
  }
}

StrategyStudy Evaluator::evaluate_strategy(const Study& study, const ImportedStrategy& imported) {
  const Scenario& scenario = study.scenario;
  DeviceProperties limited = sim::device_properties(study.cluster);
  limited.memory = study.budget;
  StrategyStudy out;
  out.imported = imported;
  ImportedStrategy resolved = imported;
  resolved.strategy = resolve_recompute(scenario, imported.strategy, limited);
  DeviceProperties unlimited = limited;
  unlimited.memory = unlimited.host_memory = 0;
  out.recording = record(scenario, resolved, unlimited);
  if (!out.recording) return out;
  const RunResult& books = out.recording->books;
  const std::int64_t on_host =
      books.reserved_host + (limited.memory_is_host ? books.reserved_device : 0);
  bool fits = within(books.reserved_device, study.budget) && within(on_host, limited.host_memory);
  const std::int64_t peak_device = books.peak_device.total();
  const std::int64_t least_on_host =
      std::max(books.peak_host.total(), limited.memory_is_host ? peak_device : 0);
  if (!fits && within(peak_device, study.budget) && within(least_on_host, limited.host_memory)) {
    // Near its limits the pool takes slabs as small as the request: that may be enough.
    const Shared tight = record(scenario, resolved, limited);
    if (tight) out.recording = tight;
    fits = tight != nullptr;
  }
  out.result = price_run(scenario, *out.recording, study.cluster, &out.timeline);
  out.memory =
      sim::memory_over_time(out.recording->trace, out.timeline.events, MemorySpace::device);
  write_origin(scenario, imported, "sim", out.result);
  if (!fits) {
    out.result.outcome = Outcome::out_of_memory;
    const bool of_device =
        !within(peak_device, study.budget) || within(on_host, limited.host_memory);
    out.result.message = of_device ? shortage_text(*out.recording, out.memory, study.budget)
                                   : host_shortage_text(on_host, limited.host_memory);
  }
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

}  // namespace zl::gui
