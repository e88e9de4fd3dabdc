#include "scenarios/cli/compare_sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/run_choice.h"
#include "scenarios/cli/run_file.h"

namespace zl::cli {
namespace {

using Runs = std::vector<RunSummary>;

bool is_file_name(const std::string& text) { return text.find(".json") != std::string::npos; }

bool are_ids(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789,") == std::string::npos;
}

// "results.json" or "results.json:zero-2".
std::vector<CompareSide> from_file(const std::string& text, const CompareQuestion& question) {
  std::string path = text, strategy;
  if (!is_file(path)) {
    const std::size_t colon = text.rfind(':');
    path = text.substr(0, colon);
    strategy = colon == std::string::npos ? "" : text.substr(colon + 1);
  }
  std::vector<CompareSide> sides;
  for (RunResult& run : read_run_file(path)) {
    if (!strategy.empty() && run.strategy != strategy) continue;
    if (!question.backend.empty() && run.backend != question.backend) continue;
    sides.push_back({{std::move(run)}, "", "", "", ""});
  }
  if (sides.empty()) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("{}: no result{}{}", path, strategy.empty() ? "" : " of strategy " + strategy,
                    question.backend.empty() ? "" : " on backend " + question.backend));
  }
  return sides;
}

bool is_over(const RunSummary& run) {
  return run.outcome != Outcome::failed && run.outcome != Outcome::interrupted;
}

// A list passes over a damaged run, which here is an error: load() says most, the list has said the
// rest.
Runs runs_of(Store& store, const std::vector<std::int64_t>& ids, const std::string& database) {
  Runs runs = store.list({.ids = ids});
  for (const std::int64_t id : ids) {
    const bool listed = std::ranges::any_of(runs, [&](const auto& run) { return run.id == id; });
    if (listed) continue;
    store.load(id);
    throw Error(ErrorCode::invalid, fmt::format("{}: run {}: what the list of runs shows of it is "
                                                "damaged; choose another run",
                                                database, id));
  }
  return runs;
}

// What a text may mean: runs by their ids are one meaning; of a strategy each run is one, those
// that ended as they should first, the newest first.
std::vector<Runs> meanings(Store& store, const std::string& text, const CompareQuestion& question,
                           const std::string& database) {
  constexpr std::int64_t kMost = 500;
  if (are_ids(text)) return {runs_of(store, run_ids(text), database)};
  Runs runs = store.list({.scenario_name = question.scenario,
                          .strategy = text,
                          .backend = question.backend,
                          .limit = kMost});
  if (runs.empty()) {
    throw Error(
        ErrorCode::invalid,
        fmt::format("\"{}\" is no run id, no file, and no strategy with a stored run{}{} in "
                    "{}; `zerolab runs` lists what is stored",
                    text, question.scenario.empty() ? "" : " of scenario " + question.scenario,
                    question.backend.empty() ? "" : " on " + question.backend, database));
  }
  std::stable_partition(runs.begin(), runs.end(), is_over);
  std::vector<Runs> all;
  for (RunSummary& run : runs) all.push_back({std::move(run)});
  return all;
}

// The first pair of those that have most in common.
std::pair<Runs, Runs> nearest_pair(const std::vector<Runs>& all_a, const std::vector<Runs>& all_b) {
  const auto common = [](const RunSummary& a, const RunSummary& b) {
    return 4 * (is_over(a) && is_over(b)) + 2 * (a.backend == b.backend) +
           (a.scenario_name == b.scenario_name);
  };
  int most = -1;
  std::pair<const Runs*, const Runs*> best;
  for (const Runs& a : all_a) {
    for (const Runs& b : all_b) {
      const int shared = common(a.front(), b.front());
      if (shared > most) best = {&a, &b};
      most = std::max(most, shared);
    }
  }
  return {*best.first, *best.second};
}

std::string machine_of(const Environment& environment) {
  return fmt::format("{}, {} cores{}", environment.cpu, environment.cores,
                     environment.gpu.empty() ? "" : ", " + environment.gpu);
}

CompareSide loaded(Store& store, const Runs& runs) {
  CompareSide side;
  for (const RunSummary& run : runs) {
    side.repeats.push_back(store.load(run.id));
    side.repeats.back().run_id = run.id;
    side.scenario = run.scenario_name;
    side.saved_at = run.saved_at;
    const std::string configuration = store.scenario_json(run.scenario_hash);
    if (!side.configuration.empty() &&
        !configuration_differences(side.configuration, configuration).empty()) {
      throw Error(ErrorCode::usage,
                  fmt::format("runs {} and {} are configured differently: they are no repeats of "
                              "one run; compare them with each other",
                              runs.front().id, run.id));
    }
    side.configuration = configuration;
    if (!run.predicted) side.machine = machine_of(store.environment(run.id));
  }
  return side;
}

std::vector<std::pair<CompareSide, CompareSide>> from_database(const CompareQuestion& question) {
  const std::string path = DatabaseOptions{question.database, false}.path().string();
  Store store = Store::open_any_version(path);
  const auto [a, b] = nearest_pair(meanings(store, question.a, question, path),
                                   meanings(store, question.b, question, path));
  std::vector<std::pair<CompareSide, CompareSide>> pair;
  pair.emplace_back(loaded(store, a), loaded(store, b));
  return pair;
}

std::vector<CompareSide> sides_of(const std::string& text, const CompareQuestion& question) {
  if (is_file_name(text)) return from_file(text, question);
  const std::string path = DatabaseOptions{question.database, false}.path().string();
  Store store = Store::open_any_version(path);
  return {loaded(store, meanings(store, text, question, path).front())};
}

}  // namespace

std::vector<std::pair<CompareSide, CompareSide>> compare_sides(const CompareQuestion& question) {
  if (!is_file_name(question.a) && !is_file_name(question.b)) return from_database(question);
  std::vector<CompareSide> all_a = sides_of(question.a, question);
  std::vector<CompareSide> all_b = sides_of(question.b, question);
  std::vector<std::pair<CompareSide, CompareSide>> pairs;
  if (all_a.size() == 1 && all_b.size() == 1) {
    pairs.emplace_back(std::move(all_a[0]), std::move(all_b[0]));
    return pairs;
  }
  for (CompareSide& a : all_a) {
    const RunResult& run = a.repeats.front();
    const auto b = std::find_if(all_b.begin(), all_b.end(), [&](const CompareSide& side) {
      const RunResult& other = side.repeats.front();
      return other.strategy == run.strategy && other.backend == run.backend;
    });
    if (b == all_b.end()) {
      log_warning(run.strategy + " on " + run.backend + " is only in " + question.a);
    } else {
      pairs.emplace_back(std::move(a), *b);
    }
  }
  if (!pairs.empty()) return pairs;
  throw Error(ErrorCode::invalid, question.a + " and " + question.b +
                                      " have no strategy and backend in common; choose one result "
                                      "of each: FILE:STRATEGY");
}

std::vector<ConfigurationDifference> side_differences(const CompareSide& a, const CompareSide& b) {
  std::vector<ConfigurationDifference> all;
  const auto add = [&all](const char* key, const std::string& of_a, const std::string& of_b) {
    if (of_a != of_b) all.push_back({key, of_a, of_b});
  };
  const RunResult &left = a.repeats.front(), &right = b.repeats.front();
  const auto end = [](const RunResult& run) {
    return run.outcome == Outcome::interrupted ? run.message : std::string("finished");
  };
  add("backend", left.backend, right.backend);
  if (!a.machine.empty() && !b.machine.empty()) add("machine", a.machine, b.machine);
  add("first step", std::to_string(left.first_step), std::to_string(right.first_step));
  add("end", end(left), end(right));
  if (!a.configuration.empty() && !b.configuration.empty()) {
    const auto more = configuration_differences(a.configuration, b.configuration);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  add("strategy", left.strategy, right.strategy);
  add("ranks", std::to_string(left.ranks), std::to_string(right.ranks));
  // Files of an older version do not say the rest.
  const RunSetup &set_a = left.setup, &set_b = right.setup;
  if (set_a.model.empty() || set_b.model.empty()) return all;
  add("precision", left.precision, right.precision);
  add("model", set_a.model, set_b.model);
  add("cluster", set_a.cluster, set_b.cluster);
  add("software", set_a.software, set_b.software);
  add("data", set_a.data, set_b.data);
  const auto add_count = [&add](const char* key, std::int64_t of_a, std::int64_t of_b) {
    add(key, std::to_string(of_a), std::to_string(of_b));
  };
  add_count("sequence_length", set_a.sequence_length, set_b.sequence_length);
  add_count("micro_batch", set_a.micro_batch, set_b.micro_batch);
  add_count("gradient_accumulation", set_a.gradient_accumulation, set_b.gradient_accumulation);
  return all;
}

}  // namespace zl::cli
