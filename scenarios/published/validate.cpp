#include "scenarios/published/validate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/error.h"
#include "core/threads/all_cores.h"
#include "scenarios/files/clusters.h"
#include "scenarios/published/groups.h"
#include "scenarios/published/record_published.h"
#include "scenarios/run/strategy_bytes.h"

namespace zl {
namespace {

// Priced as the fit without the run's group has it; nothing where it was in no fit.
std::optional<double> left_out_seconds(const PublishedRun& run, const RecordedRun& recorded) {
  Scenario plain = recorded.scenario;
  plain.run.software = kOwnSoftware;
  const sim::ClusterSpec cluster = scenario_cluster(plain);
  const std::optional<sim::Software> profile =
      fitted_without(load_software(recorded.scenario.run.software), run, cluster.device.generation);
  if (!profile) return {};
  return price_published(recorded, with_software(cluster, *profile, plain.model)).seconds;
}

Judged judge(const PublishedRun& run, const std::string& software) {
  Judged judged{.run = &run, .why_not = {}};
  Expressed expressed = express(run, software);
  judged.why_not = expressed.why_not;
  if (!expressed.scenario) return judged;
  if (expressed.bytes > 0) judged.why_not = "bytes, which are judged apart";
  if (expressed.bytes > 0) return judged;
  judged.measured = expressed.seconds;
  judged.every = std::move(expressed.every);
  try {
    const RecordedRun recorded = record_published(std::move(*expressed.scenario), run.kind);
    const PricedStep step = price_published(recorded, scenario_cluster(recorded.scenario));
    judged.predicted = step.seconds;
    judged.left_out = left_out_seconds(run, recorded).value_or(step.seconds);
    judged.low = step.low;
    judged.high = step.high;
    judged.least = step.least;
    if (judged.is_impossible()) {
      judged.why_not = "faster than the peak of the GPU that it names";
    }
  } catch (const Error& error) {
    judged.why_not = error.what();
  }
  return judged;
}

Judged judge_memory(const PublishedRun& run, const std::string& software) {
  Judged judged{.run = &run, .why_not = {}};
  const Expressed expressed = express(run, software);
  judged.why_not = expressed.why_not;
  if (!expressed.scenario) return judged;
  const Scenario& scenario = *expressed.scenario;
  const auto [bytes, why_not] =
      software_bytes_or_why(scenario, scenario.strategies.front().strategy);
  judged.why_not = why_not;
  if (!bytes && why_not.empty()) judged.why_not = "this core's bytes are its own";
  if (!bytes) return judged;
  judged.measured = expressed.bytes;
  judged.every = expressed.every;
  const sim::HeldMemory& held = is_of_last_rank(run) ? bytes->ranks.back() : bytes->held;
  judged.predicted = static_cast<double>(is_reserved_memory(run) ? held.reserved : held.total());
  judged.low = judged.predicted * bytes->low;
  judged.high = judged.predicted * bytes->high;
  judged.left_out = judged.predicted;
  return judged;
}

// A reserve that was fitted to published peaks is found again for each of them by the others.
void fit_reserves_without_each(std::vector<Judged>& all) {
  const auto counts = [](const Judged& each) {
    return each.is_predicted() && is_reserved_memory(*each.run) &&
           load_software(each.run->software).fits_reserve;
  };
  for (Judged& one : all) {
    if (!counts(one)) continue;
    double sum = 0, others = 0;
    for (const Judged& each : all) {
      if (&each == &one || !counts(each) || each.run->software != one.run->software) continue;
      sum += std::log(each.measured / each.predicted);
      others += 1;
    }
    if (others > 0) one.left_out = one.predicted * std::exp(sum / others);
  }
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] <= values[order[i]]) ++end;
    const double mean = static_cast<double>(i + end - 1) / 2;
    for (; i < end; ++i) ranks[order[i]] = mean;
  }
  return ranks;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto count = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / count;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / count;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

double spearman(std::span<const Judged* const> judged) {
  if (judged.size() < 3) return 0;
  std::vector<double> measured, predicted;
  for (const Judged* each : judged) {
    measured.push_back(each->measured);
    predicted.push_back(each->predicted);
  }
  return correlation(ranks_of(measured), ranks_of(predicted));
}

// Of one of the predictions of each, none of them 0.
Errors errors_by(std::span<const Judged* const> judged, double Judged::*prediction) {
  Errors out;
  std::vector<double> sizes;
  double inside = 0, all = 0;
  for (const Judged* each : judged) {
    const double predicted = each->*prediction, moved = predicted / each->predicted;
    const double error = predicted / each->measured - 1;
    sizes.push_back(std::abs(error));
    out.mape += sizes.back();
    out.bias += error;
    for (const double measured : each->every) {
      inside += each->low * moved <= measured && measured <= each->high * moved ? 1 : 0;
      all += 1;
    }
  }
  const auto count = static_cast<double>(judged.size());
  out.mape /= count;
  out.bias /= count;
  out.inside = inside / all;
  std::ranges::sort(sizes);
  out.p95 = sizes[static_cast<std::size_t>(std::ceil(0.95 * count)) - 1];
  return out;
}

template <class KeyOf>
std::vector<Accuracy> grouped(std::span<const Judged> judged, const KeyOf& key_of) {
  std::vector<std::pair<Accuracy, std::vector<const Judged*>>> groups;
  std::map<std::string, std::size_t> places;
  for (const Judged& each : judged) {
    if (!each.is_predicted()) continue;
    const Accuracy key = key_of(each);
    const std::string text =
        key.source + '\n' + key.software + '\n' + key.gpu + '\n' + name_of(each.run->kind);
    const auto [place, is_new] = places.try_emplace(text, groups.size());
    if (is_new) groups.push_back({key, {}});
    groups[place->second].second.push_back(&each);
  }
  std::vector<Accuracy> all;
  for (const auto& [key, members] : groups) {
    Accuracy accuracy = accuracy_of(members);
    accuracy.source = key.source;
    accuracy.software = key.software;
    accuracy.gpu = key.gpu;
    accuracy.kind = members.front()->run->kind;
    all.push_back(std::move(accuracy));
  }
  return all;
}

}  // namespace

std::vector<Judged> judge_published(std::span<const PublishedRun> runs,
                                    const std::string& software) {
  if (!software.empty()) load_software(software);  // says what is wrong with it
  std::vector<Judged> all(runs.size());
  on_all_cores(runs.size(), [&](std::size_t i) { all[i] = judge(runs[i], software); });
  return all;
}

std::vector<Judged> judge_published_memory(std::span<const PublishedRun> runs,
                                           const std::string& software) {
  if (!software.empty()) load_software(software);  // says what is wrong with it
  std::vector<Judged> all;
  for (const PublishedRun& run : runs) {
    if (is_memory(run)) all.push_back(judge_memory(run, software));
  }
  if (software.empty()) fit_reserves_without_each(all);
  return all;
}

Accuracy accuracy_of(std::span<const Judged* const> judged) {
  Accuracy out;
  out.rows = static_cast<std::int64_t>(judged.size());
  if (out.rows == 0) return out;
  static_cast<Errors&>(out) = errors_by(judged, &Judged::predicted);
  const auto is_known = [](const Judged* each) { return each->left_out > 0; };
  if (std::ranges::all_of(judged, is_known)) out.left_out = errors_by(judged, &Judged::left_out);
  out.worst.assign(judged.begin(), judged.end());
  out.rank_correlation = spearman(judged);
  std::ranges::stable_sort(out.worst, std::greater{},
                           [](const Judged* each) { return std::abs(each->error()); });
  out.worst.resize(std::min<std::size_t>(5, out.worst.size()));
  return out;
}

Accuracy accuracy_of_kind(std::span<const Judged> judged, TimeKind kind) {
  std::vector<const Judged*> members;
  for (const Judged& each : judged) {
    if (each.is_predicted() && each.run->kind == kind) members.push_back(&each);
  }
  Accuracy accuracy = accuracy_of(members);
  accuracy.kind = kind;
  return accuracy;
}

std::vector<Accuracy> accuracy_by_source(std::span<const Judged> judged) {
  return grouped(judged, [](const Judged& each) {
    Accuracy key;
    key.source = each.run->source;
    key.software = each.run->software;
    key.gpu = each.run->gpu;
    return key;
  });
}

std::vector<Accuracy> accuracy_by_software(std::span<const Judged> judged) {
  return grouped(judged, [](const Judged& each) {
    Accuracy key;
    key.software = each.run->software;
    key.gpu = each.run->gpu;
    return key;
  });
}

}  // namespace zl
