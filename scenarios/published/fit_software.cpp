#include "scenarios/published/fit_software.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/files/clusters.h"
#include "scenarios/published/record_published.h"
#include "scenarios/published/validate.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

constexpr double kNineInTen = 1.645;

struct Sample {
  std::string group, source;
  double seconds = 0, weight = 1;
  sim::ClusterSpec cluster;  // without the software
  RecordedRun run;
};

// Every so-manieth row of a source.
std::vector<const PublishedRun*> chosen(const std::string& software,
                                        std::span<const PublishedRun> runs, std::size_t most) {
  std::map<std::string, std::vector<const PublishedRun*>> sources;
  for (const PublishedRun& run : runs) {
    if (run.software == software && express(run).seconds > 0) sources[run.source].push_back(&run);
  }
  std::vector<const PublishedRun*> all;
  for (const auto& [source, rows] : sources) {
    const std::size_t count = std::min(most, rows.size());
    for (std::size_t i = 0; i < count; ++i) all.push_back(rows[i * rows.size() / count]);
  }
  return all;
}

std::vector<Sample> record_all(const std::vector<const PublishedRun*>& rows) {
  std::vector<Sample> samples(rows.size());
  on_all_cores(rows.size(), [&](std::size_t i) {
    Expressed expressed = express(*rows[i]);
    Scenario plain = *expressed.scenario;
    plain.run.software = kOwnSoftware;
    Sample& sample = samples[i];
    sample.seconds = expressed.seconds;
    sample.cluster = scenario_cluster(plain);
    sample.source = rows[i]->source;
    sample.run = record_published(std::move(*expressed.scenario));
  });
  std::map<std::string, double> counts;
  for (const Sample& sample : samples) counts[sample.source] += 1;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    // A source of many rows counts for more than one of few, by the root of their number.
    samples[i].weight = 1 / std::sqrt(counts[samples[i].source]);
    samples[i].group = samples[i].source;
    const CsvRow& row = rows[i]->row;
    if (counts.size() == 1) {
      samples[i].group = row.at("layers") + " layers of " + row.at("hidden") + ", tensor " +
                         row.at("tp") + ", " + row.at("n_gpus") + " GPUs";
    }
  }
  return samples;
}

using Samples = std::vector<const Sample*>;

std::vector<double> errors_of(const sim::Software& software, const Samples& samples) {
  std::vector<double> errors(samples.size());
  on_all_cores(samples.size(), [&](std::size_t i) {
    const RunResult result =
        price_published(samples[i]->run, sim::with_software(samples[i]->cluster, software));
    errors[i] = std::log(samples[i]->seconds / result.step_time.median);
  });
  return errors;
}

// Squares near 0, absolute errors far from it: a run that is of another kind than it seems pulls no
// more than others. Numbers that no run tells stay where they began.
double loss(sim::Software& software, const sim::Software& start, const Samples& samples,
            const std::vector<std::string>& keys) {
  constexpr double kFar = 0.12, kPrior = 0.35, kPriorWeight = 0.002;
  const std::vector<double> errors = errors_of(software, samples);
  double sum = 0, weights = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double far = errors[i] / kFar;
    sum += samples[i]->weight * kFar * kFar * 2 * (std::sqrt(1 + far * far) - 1);
    weights += samples[i]->weight;
  }
  double prior = 0;
  sim::Software before = start;
  for (const std::string& key : keys) {
    const double moved = std::log(number_of(software, key) / number_of(before, key)) / kPrior;
    prior += kPriorWeight * moved * moved / static_cast<double>(keys.size());
  }
  return sum / weights + prior;
}

sim::FittedNumber range_of(const std::string& key) {
  const auto& all = sim::fitted_numbers();
  return *std::ranges::find_if(all, [&](const sim::FittedNumber& each) { return key == each.key; });
}

// One number after the other up or down, by ever smaller steps of its logarithm.
sim::Software search(sim::Software software, const sim::Software& start, const Samples& samples,
                     const std::vector<std::string>& keys, double first_step) {
  constexpr double kLastStep = 0.015;
  double best = loss(software, start, samples, keys);
  for (double step = first_step; step > kLastStep;) {
    bool moved = false;
    for (const std::string& key : keys) {
      const sim::FittedNumber range = range_of(key);
      for (const double sign : {1.0, -1.0}) {
        sim::Software tried = software;
        double& number = number_of(tried, key);
        number = std::clamp(number * std::exp(sign * step), range.least, range.most);
        const double now = loss(tried, start, samples, keys);
        if (now >= best) continue;
        best = now;
        software = tried;
        moved = true;
        break;
      }
    }
    if (!moved) step /= 2;
  }
  return software;
}

double root_of(const std::vector<double>& errors) {
  double squares = 0;
  for (const double error : errors) squares += error * error;
  return std::sqrt(squares / static_cast<double>(errors.size()));
}

// So wide that nine in ten of the errors are within it.
double bar_of(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  std::ranges::sort(errors);
  const auto count = static_cast<double>(errors.size());
  return errors[static_cast<std::size_t>(std::ceil(0.9 * count)) - 1] / kNineInTen;
}

void leave_out(const std::vector<Sample>& samples, const std::vector<std::string>& keys,
               const sim::Software& start, SoftwareFit& fit) {
  std::set<std::string> groups;
  for (const Sample& sample : samples) groups.insert(sample.group);
  std::map<sim::Generation, std::vector<double>> by_generation;
  for (const std::string& group : groups) {
    Samples kept, left;
    for (const Sample& sample : samples) (sample.group == group ? left : kept).push_back(&sample);
    const sim::Software without =
        kept.empty() ? start : search(fit.software, start, kept, keys, 0.12);
    fit.left_out.push_back({group, errors_of(without, left)});
    for (std::size_t i = 0; i < left.size(); ++i) {
      by_generation[left[i]->cluster.device.generation].push_back(fit.left_out.back().errors[i]);
    }
  }
  for (const auto& [generation, errors] : by_generation) fit.bars[generation] = bar_of(errors);
}

}  // namespace

SoftwareFit fit_software(const sim::Software& start, std::span<const PublishedRun> runs,
                         const FitOptions& options) {
  const auto rows = chosen(start.name, runs, options.most_rows);
  if (rows.empty()) {
    throw Error(ErrorCode::invalid, "calibrate: no run of \"" + start.name +
                                        "\" can be expressed; zerolab validate says why");
  }
  const std::vector<Sample> samples = record_all(rows);
  Samples all;
  for (const Sample& sample : samples) all.push_back(&sample);
  SoftwareFit fit;
  fit.rows = rows.size();
  fit.software = search(start, start, all, options.keys, 0.25);
  fit.error = root_of(errors_of(fit.software, all));
  leave_out(samples, options.keys, start, fit);
  return fit;
}

std::string fitted_text(const std::string& profile, const SoftwareFit& fit,
                        const std::vector<std::string>& keys) {
  Json json = parse_json(profile, "profile");
  sim::Software software = fit.software;
  const auto rounded = [](double value) {
    const double digits = std::pow(10.0, 2 - std::floor(std::log10(value)));
    return std::round(value * digits) / digits;
  };
  for (const std::string& key : keys) {
    std::string pointer = "/" + key;
    std::ranges::replace(pointer, '.', '/');
    json[Json::json_pointer(pointer)] = rounded(number_of(software, key));
  }
  for (const auto& [generation, bar] : fit.bars) {
    json["step_error"][name_of(generation)] = rounded(bar);
  }
  // What was fitted to bytes stays.
  Json fitted = keys;
  for (const Json& key : json.value("fitted", Json::array())) {
    if (key.get<std::string>().starts_with("memory.")) fitted.push_back(key);
  }
  json["fitted"] = fitted;
  return to_text(json, 2) + "\n";
}

}  // namespace zl
