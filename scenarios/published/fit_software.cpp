#include "scenarios/published/fit_software.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/clusters.h"
#include "scenarios/published/fit_numbers.h"
#include "scenarios/published/groups.h"
#include "scenarios/published/validate.h"
#include "simulator/cluster/fitted_numbers.h"
#include "simulator/error_bar.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

struct Row {
  const PublishedRun* run = nullptr;
  Expressed expressed;
  std::optional<sim::Software> derived;
};

// The profile of a run that has all numbers from `software`.
std::optional<sim::Software> derived_from(const sim::Software& software, const std::string& name) {
  if (!catalog_has("software", name)) return {};
  sim::Software derived = load_software(name);
  sim::Software base = software;
  const auto& all = sim::fitted_numbers();
  const bool has_all = std::ranges::all_of(all, [&](const sim::FittedNumber& each) {
    return number_of(derived, each.key) == number_of(base, each.key);
  });
  return derived.base == software.name && has_all ? std::optional(std::move(derived))
                                                  : std::nullopt;
}

// Steps that were measured, of that software, and that no peak forbids.
std::vector<FitRun> record_all(const sim::Software& software, std::span<const PublishedRun> runs) {
  std::vector<Row> rows;
  for (const PublishedRun& run : runs) {
    if (run.kind != TimeKind::measured || is_memory(run)) continue;
    std::optional<sim::Software> derived;
    if (run.software != software.name) {
      derived = derived_from(software, run.software);
      if (!derived) continue;
    }
    Expressed expressed = express(run);
    if (expressed.scenario) rows.push_back({&run, std::move(expressed), std::move(derived)});
  }
  std::vector<FitRun> recorded(rows.size());
  on_all_cores(rows.size(), [&](std::size_t i) {
    FitRun& run = recorded[i];
    Scenario plain = *rows[i].expressed.scenario;
    plain.run.software = kOwnSoftware;
    run.seconds = rows[i].expressed.seconds;
    run.every = rows[i].expressed.every;
    run.derived = rows[i].derived;
    run.cluster = scenario_cluster(plain);
    run.source = rows[i].run->source;
    run.group = shape_group(*rows[i].run, run.cluster.device.generation);
    try {
      run.recorded = record_published(std::move(*rows[i].expressed.scenario));
      const sim::ClusterSpec cluster =
          with_software(run.cluster, software, run.recorded.scenario.model);
      const PricedStep step = price_published(run.recorded, cluster);
      if (step.least > run.seconds) run.seconds = 0;
    } catch (const Error&) {
      run.seconds = 0;  // validate says why
    }
  });
  std::erase_if(recorded, [](const FitRun& run) { return run.seconds == 0; });
  return recorded;
}

// A source of many rows counts for more than one of few, by the root of their number. Where GPUs
// of a generation have several sources, these are the groups.
void weigh_and_group(std::vector<FitRun>& runs) {
  std::map<std::string, double> counts;
  std::map<sim::Generation, std::set<std::string>> sources;
  for (const FitRun& run : runs) {
    counts[run.source] += 1;
    sources[run.cluster.device.generation].insert(run.source);
  }
  for (FitRun& run : runs) {
    run.weight = 1 / std::sqrt(counts[run.source]);
    const sim::Generation generation = run.cluster.device.generation;
    if (sources[generation].size() > 1) run.group = run.source + ", " + name_of(generation);
  }
}

double root_of(const std::vector<double>& errors) {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

// Errors of all groups of a generation but one.
std::vector<double> errors_beside(const std::vector<LeftOut>& all, const LeftOut* one,
                                  sim::Generation generation) {
  std::vector<double> errors;
  for (const LeftOut& each : all) {
    if (&each == one || each.generation != generation) continue;
    errors.insert(errors.end(), each.every.begin(), each.every.end());
  }
  return errors;
}

void find_bars(SoftwareFit& fit) {
  constexpr std::size_t kLeastRows = 10;
  for (LeftOut& each : fit.left_out) {
    const std::vector<double> others = errors_beside(fit.left_out, &each, each.generation);
    if (others.empty()) continue;
    const double bar = sim::kNineInTen * sim::bar_of(others);
    const auto inside =
        std::ranges::count_if(each.every, [&](double error) { return std::abs(error) <= bar; });
    each.inside = static_cast<double>(inside) / static_cast<double>(each.every.size());
    const std::vector<double> all = errors_beside(fit.left_out, nullptr, each.generation);
    if (all.size() >= kLeastRows) fit.bars[each.generation] = sim::bar_of(all);
  }
}

LeftOut left_out_of(sim::Software without, const std::string& group, const FitRuns& left,
                    const std::vector<std::string>& keys) {
  LeftOut out{.group = group,
              .generation = left.front()->cluster.device.generation,
              .numbers = {},
              .errors = errors_of(without, left),
              .every = {}};
  for (const std::string& key : keys) out.numbers.push_back(number_of(without, key));
  for (std::size_t i = 0; i < left.size(); ++i) {
    for (const double seconds : left[i]->every) {
      out.every.push_back(out.errors[i] + std::log(seconds / left[i]->seconds));
    }
  }
  return out;
}

// Where the profile's own fit without the group ended.
std::optional<sim::Software> stored_without(const std::string& group, sim::Software profile,
                                            const std::vector<std::string>& keys) {
  const auto stored = profile.left_out.find(group);
  if (stored == profile.left_out.end() || profile.fitted != keys) return {};
  for (std::size_t i = 0; i < keys.size(); ++i) number_of(profile, keys[i]) = stored->second[i];
  return profile;
}

void leave_out(const sim::Software& prior, const sim::Software* stored, const Linearized& there,
               const FitRuns& all, SoftwareFit& fit) {
  std::map<std::string, FitRuns> groups;
  for (const FitRun* run : all) groups[run->group].push_back(run);
  for (const auto& [group, left] : groups) {
    std::optional<sim::Software> start;
    if (stored != nullptr) start = stored_without(group, *stored, there.keys);
    const sim::Software without =
        groups.size() == 1
            ? prior
            : fit_without(group, prior, fit.software, there, start ? &*start : nullptr, all);
    fit.left_out.push_back(left_out_of(without, group, left, there.keys));
  }
}

}  // namespace

SoftwareFit fit_software(const sim::Software& profile, std::span<const PublishedRun> runs,
                         const std::vector<std::string>& keys, FitFrom from) {
  std::vector<FitRun> recorded = record_all(profile, runs);
  if (recorded.empty()) {
    throw Error(ErrorCode::invalid, "calibrate: no run of \"" + profile.name +
                                        "\" can be expressed; zerolab validate says why");
  }
  weigh_and_group(recorded);
  FitRuns all;
  SoftwareFit fit;
  for (const FitRun& run : recorded) {
    all.push_back(&run);
    sim::add_to(fit.techniques[run.cluster.device.generation],
                sim::techniques_of(run.recorded.recording.strategy));
  }
  sim::Software prior = profile;
  for (const std::string& key : keys) {
    const auto found = profile.priors.find(key);
    if (found != profile.priors.end()) number_of(prior, key) = found->second;
  }
  fit.rows = recorded.size();
  const sim::Software* stored = from == FitFrom::profile ? &profile : nullptr;
  FittedNumbers fitted = fit_numbers(prior, stored, all, keys);
  fit.software = std::move(fitted.software);
  fit.error = root_of(fitted.there.errors);
  leave_out(prior, stored, fitted.there, all, fit);
  find_bars(fit);
  return fit;
}

namespace {

// Three digits.
double rounded(double value) {
  const double digits = std::pow(10.0, 2 - std::floor(std::log10(value)));
  return std::round(value * digits) / digits;
}

// Of these runs alone: what others supported had other numbers.
Json errors_json(const SoftwareFit& fit) {
  Json errors = {{"unsupported", fit.software.step_error}};
  for (const auto& [generation, bar] : fit.bars) errors[name_of(generation)] = rounded(bar);
  for (const auto& [generation, bar] : fit.bars) {
    Json& sets = errors["techniques"][name_of(generation)] = Json::array();
    for (const sim::Techniques used : fit.techniques.at(generation)) {
      sets.push_back(sim::names_of(used));
    }
  }
  return errors;
}

}  // namespace

std::string fitted_text(const std::string& profile, const SoftwareFit& fit,
                        const std::vector<std::string>& keys) {
  Json json = parse_json(profile, "profile");
  sim::Software software = fit.software;
  for (const std::string& key : keys) {
    std::string pointer = "/" + key;
    std::ranges::replace(pointer, '.', '/');
    json[Json::json_pointer(pointer)] = rounded(number_of(software, key));
  }
  json["step_error"] = errors_json(fit);
  json["x-step-error"] =
      "Of " + std::to_string(fit.rows) + " runs, a group of which was left out at a time.";
  json["fitted"] = keys;
  if (software.fits_reserve) json["fitted"].push_back(sim::kFittedReserve);  // to bytes
  json["left_out"] = Json::object();
  for (const LeftOut& each : fit.left_out) {
    Json& numbers = json["left_out"][each.group] = Json::array();
    for (const double number : each.numbers) numbers.push_back(rounded(number));
  }
  return to_text(json, 2) + "\n";
}

}  // namespace zl
