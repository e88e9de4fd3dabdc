#include "scenarios/published/fit_numbers.h"

#include <algorithm>
#include <cmath>

#include "core/threads/all_cores.h"
#include "simulator/cluster/fitted_numbers.h"

namespace zl {
namespace {

constexpr double kFar = 0.12;  // errors above weigh as absolute ones
constexpr double kPriorWeight = 0.0005;

bool is_of_host(const std::string& key) { return key.starts_with("host."); }

// Of a logarithm: benchmarks say what kernels and links reach, and little of others' processors.
double prior_width(const std::string& key) {
  if (is_of_host(key)) return 1.0;
  return key == "communication.overlap_loss" || key == "communication.adapters" ? 0.5 : 0.15;
}

double logarithm(sim::Software software, const std::string& key) {
  return std::log(number_of(software, key));
}

// By exp(step), within its range; the step that was possible.
double move(sim::Software& software, const std::string& key, double step) {
  const sim::FittedNumber& range = sim::range_of(key);
  double& number = number_of(software, key);
  const double before = number;
  number = std::clamp(number * std::exp(step), range.least, range.most);
  return std::log(number / before);
}

// The solution of a small symmetric system, by elimination; rows of zeros give zeros.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b) {
  const std::size_t size = b.size();
  for (std::size_t i = 0; i < size; ++i) {
    std::size_t pivot = i;
    for (std::size_t row = i + 1; row < size; ++row) {
      if (std::abs(a[row][i]) > std::abs(a[pivot][i])) pivot = row;
    }
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    if (a[i][i] == 0) continue;
    for (std::size_t row = i + 1; row < size; ++row) {
      const double factor = a[row][i] / a[i][i];
      for (std::size_t column = i; column < size; ++column) a[row][column] -= factor * a[i][column];
      b[row] -= factor * b[i];
    }
  }
  std::vector<double> x(size);
  for (std::size_t i = size; i-- > 0;) {
    double sum = b[i];
    for (std::size_t column = i + 1; column < size; ++column) sum -= a[i][column] * x[column];
    x[i] = a[i][i] == 0 ? 0 : sum / a[i][i];
  }
  return x;
}

// What one fit is about: the runs and what each weighs.
struct Target {
  const sim::Software& prior;
  const FitRuns& runs;
  const std::vector<std::string>& keys;
  std::vector<double> weights;  // by run; 0: left out
};

Target target(const sim::Software& prior, const FitRuns& runs, const std::vector<std::string>& keys,
              const std::string* left_out) {
  Target all{prior, runs, keys, {}};
  double sum = 0;
  for (const FitRun* run : runs) {
    all.weights.push_back(left_out != nullptr && run->group == *left_out ? 0 : run->weight);
    sum += all.weights.back();
  }
  for (double& weight : all.weights) weight /= std::max(sum, 1e-300);
  return all;
}

double prior_strength(const Target& target, const std::string& key) {
  const double width = prior_width(key);
  return kPriorWeight / (width * width * static_cast<double>(target.keys.size()));
}

double loss(const Target& target, const sim::Software& software,
            const std::vector<double>& errors) {
  double sum = 0;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    const double far = errors[i] / kFar;
    sum += target.weights[i] * kFar * kFar * 2 * (std::sqrt(1 + far * far) - 1);
  }
  for (const std::string& key : target.keys) {
    const double moved = logarithm(software, key) - logarithm(target.prior, key);
    sum += prior_strength(target, key) * moved * moved;
  }
  return sum;
}

// The step of each logarithm that the slopes say is best.
std::vector<double> best_step(const Target& target, const sim::Software& software,
                              const std::vector<double>& errors, const Linearized& there) {
  const std::size_t count = target.keys.size();
  std::vector<std::vector<double>> a(count, std::vector<double>(count));
  std::vector<double> b(count);
  for (std::size_t run = 0; run < errors.size(); ++run) {
    const double far = errors[run] / kFar;
    const double weight = target.weights[run] / std::sqrt(1 + far * far);
    if (weight == 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      b[i] -= weight * there.slopes[i][run] * errors[run];
      for (std::size_t j = 0; j < count; ++j) {
        a[i][j] += weight * there.slopes[i][run] * there.slopes[j][run];
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& key = target.keys[i];
    a[i][i] += prior_strength(target, key);
    b[i] += prior_strength(target, key) * (logarithm(target.prior, key) - logarithm(software, key));
  }
  // A number that would leave its range stays, and the others are found again.
  std::vector<double> step = solve(a, b);
  for (std::size_t i = 0; i < count; ++i) {
    sim::Software tried = software;
    const double possible = move(tried, target.keys[i], step[i]);
    if (std::abs(possible - step[i]) < 1e-9) continue;
    for (std::size_t j = 0; j < count; ++j) {
      b[j] -= a[j][i] * possible;
      a[i][j] = a[j][i] = 0;
    }
    a[i][i] = 1;
    b[i] = possible;
    step = solve(a, b);
  }
  return step;
}

sim::Software moved(sim::Software software, const std::vector<std::string>& keys,
                    const std::vector<double>& step, double share) {
  constexpr double kLongest = 0.7;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    move(software, keys[i], std::clamp(share * step[i], -kLongest, kLongest));
  }
  return software;
}

struct Point {
  sim::Software software;
  std::vector<double> errors;
  double loss = 0;
};

bool is_gain(double before, double after) {
  constexpr double kEnough = 1e-3;
  return before - after > kEnough * before;
}

// Whether a step is worth pricing, as far as the slopes tell.
bool promises(const Target& target, const Linearized& there, const std::vector<double>& step,
              const Point& at) {
  const sim::Software tried = moved(at.software, target.keys, step, 1);
  std::vector<double> errors = at.errors;
  for (std::size_t key = 0; key < step.size(); ++key) {
    const double by = logarithm(tried, target.keys[key]) - logarithm(at.software, target.keys[key]);
    for (std::size_t i = 0; i < errors.size(); ++i) errors[i] += by * there.slopes[key][i];
  }
  return is_gain(at.loss, loss(target, tried, errors));
}

// One step, shortened until it helps; whether any did. checks: what is there stays where the slopes
// promise nothing better.
bool improve(const Target& target, const Linearized& there, bool checks, Point& at) {
  const std::vector<double> step = best_step(target, at.software, at.errors, there);
  if (checks && !promises(target, there, step, at)) return false;
  for (double share = 1; share > 0.2; share /= 2) {
    Point tried{moved(at.software, target.keys, step, share), {}, 0};
    tried.errors = errors_of(tried.software, target.runs);
    tried.loss = loss(target, tried.software, tried.errors);
    if (tried.loss >= at.loss) continue;
    const bool helps = is_gain(at.loss, tried.loss);
    at = std::move(tried);
    return helps;
  }
  return false;
}

// Far steps of the host's numbers, one after the other: where the host is no limit, slopes say
// nothing of what it would be like if it were.
void scan(const Target& target, Point& at) {
  for (const std::string& key : target.keys) {
    if (!is_of_host(key)) continue;
    for (const double step : {-1.4, -0.7, 0.7, 1.4, 2.1}) {
      Point tried{at.software, {}, 0};
      number_of(tried.software, key) = std::exp(logarithm(target.prior, key));
      move(tried.software, key, step);
      tried.errors = errors_of(tried.software, target.runs);
      tried.loss = loss(target, tried.software, tried.errors);
      if (tried.loss < at.loss) at = std::move(tried);
    }
  }
}

}  // namespace

std::vector<double> predicted_seconds(const sim::Software& software, const FitRuns& runs) {
  std::vector<double> seconds(runs.size());
  on_all_cores(runs.size(), [&](std::size_t i) {
    const FitRun& run = *runs[i];
    const sim::Software own = run.derived ? sim::with_numbers_of(*run.derived, software) : software;
    const sim::ClusterSpec cluster = with_software(run.cluster, own, run.recorded.scenario.model);
    seconds[i] = price_published(run.recorded, cluster).seconds;
  });
  return seconds;
}

std::vector<double> errors_of(const sim::Software& software, const FitRuns& runs) {
  std::vector<double> errors = predicted_seconds(software, runs);
  for (std::size_t i = 0; i < runs.size(); ++i) errors[i] = std::log(runs[i]->seconds / errors[i]);
  return errors;
}

namespace {

Linearized linearize(const sim::Software& software, std::vector<double> errors, const FitRuns& runs,
                     const std::vector<std::string>& keys) {
  constexpr double kStep = 0.05;
  Linearized there{keys, std::move(errors), {}};
  for (const std::string& key : keys) {
    sim::Software tried = software;
    double step = move(tried, key, kStep);
    if (step < kStep / 2) {
      tried = software;
      step = move(tried, key, -kStep);
    }
    std::vector<double> slopes = errors_of(tried, runs);
    for (std::size_t i = 0; i < slopes.size(); ++i)
      slopes[i] = (slopes[i] - there.errors[i]) / step;
    there.slopes.push_back(std::move(slopes));
  }
  return there;
}

}  // namespace

FittedNumbers fit_numbers(const sim::Software& prior, const sim::Software* start,
                          const FitRuns& runs, const std::vector<std::string>& keys) {
  constexpr int kMostIterations = 12;
  const Target all = target(prior, runs, keys, nullptr);
  Point at{start != nullptr ? *start : prior, {}, 0};
  at.errors = errors_of(at.software, runs);
  at.loss = loss(all, at.software, at.errors);
  if (start == nullptr) scan(all, at);
  Linearized there = linearize(at.software, at.errors, runs, keys);
  for (int step = 0; step < kMostIterations; ++step) {
    const double before = at.loss;
    const bool helps = improve(all, there, start != nullptr, at);
    if (at.loss != before) there = linearize(at.software, at.errors, runs, keys);
    if (!helps) break;
  }
  return {at.software, std::move(there)};
}

sim::Software fit_without(const std::string& group, const sim::Software& prior,
                          const sim::Software& fitted, const Linearized& there,
                          const sim::Software* start, const FitRuns& runs) {
  constexpr int kMostIterations = 5;
  const Target kept = target(prior, runs, there.keys, &group);
  Point at{fitted, there.errors, 0};
  if (start != nullptr) at = {*start, errors_of(*start, runs), 0};
  at.loss = loss(kept, at.software, at.errors);
  for (int step = 0; step < kMostIterations && improve(kept, there, start != nullptr, at); ++step) {
  }
  return at.software;
}

}  // namespace zl
