#include "simulator/cost/least_squares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace zl::sim {
namespace {

constexpr int kTerms = 3;  // fixed, per unit, per byte
using Vector = std::array<double, kTerms>;

// min |A x - b|^2 as A'A, A'b and b'b, with the columns of A scaled to length 1.
struct NormalEquations {
  std::array<Vector, kTerms> gram{};
  Vector right{};
  double target = 0;

  void add(Vector row, const Vector& lengths, double weight, double goal) {
    for (int i = 0; i < kTerms; ++i) row[i] /= lengths[i];
    for (int i = 0; i < kTerms; ++i) {
      for (int j = 0; j < kTerms; ++j) gram[i][j] += weight * row[i] * row[j];
      right[i] += weight * row[i] * goal;
    }
    target += weight * goal * goal;
  }

  double residual(const Vector& x) const {
    double value = target;
    for (int i = 0; i < kTerms; ++i) {
      value -= 2 * x[i] * right[i];
      for (int j = 0; j < kTerms; ++j) value += x[i] * gram[i][j] * x[j];
    }
    return value;
  }
};

// Gaussian elimination on the terms in `support` (bits), the others stay 0. Empty when the columns
// are parallel.
std::optional<Vector> solve(const NormalEquations& equations, int support) {
  constexpr double kParallel = 1e-9;
  auto gram = equations.gram;
  Vector right = equations.right, x{};
  const auto chosen = [&](int i) { return (support >> i & 1) != 0; };
  for (int pivot = 0; pivot < kTerms; ++pivot) {
    if (!chosen(pivot)) continue;
    if (gram[pivot][pivot] < kParallel) return std::nullopt;
    for (int row = pivot + 1; row < kTerms; ++row) {
      const double factor = gram[row][pivot] / gram[pivot][pivot];
      for (int column = pivot; column < kTerms; ++column) {
        gram[row][column] -= factor * gram[pivot][column];
      }
      right[row] -= factor * right[pivot];
    }
  }
  for (int row = kTerms - 1; row >= 0; --row) {
    if (!chosen(row)) continue;
    double sum = right[row];
    for (int column = row + 1; column < kTerms; ++column) sum -= gram[row][column] * x[column];
    x[row] = sum / gram[row][row];
  }
  return x;
}

// x[0] at most `most_fixed`.
Vector solve_non_negative(const NormalEquations& equations, double most_fixed) {
  Vector best{};
  double smallest = std::numeric_limits<double>::infinity();
  for (int support = 1; support < 1 << kTerms; ++support) {
    const std::optional<Vector> x = solve(equations, support);
    if (!x || *std::min_element(x->begin(), x->end()) < 0 || (*x)[0] > most_fixed) continue;
    const double residual = equations.residual(*x);
    if (residual < smallest) {
      smallest = residual;
      best = *x;
    }
  }
  return best;
}

Vector features(const Sample& sample) { return {1, sample.units, sample.bytes}; }

// Below the clock's resolution the variance does not shrink further.
double weight(const Sample& sample, Weigh by) {
  const double seconds = std::max(sample.seconds, 1e-9);
  if (by == Weigh::shapes) return 1 / (seconds * seconds);
  return static_cast<double>(sample.count) / seconds;
}

Vector column_lengths(std::span<const Sample> samples, Weigh by) {
  Vector lengths{};
  for (const Sample& sample : samples) {
    const Vector row = features(sample);
    for (int i = 0; i < kTerms; ++i) lengths[i] += weight(sample, by) * row[i] * row[i];
  }
  for (double& length : lengths) length = length > 0 ? std::sqrt(length) : 1;
  return lengths;
}

NormalEquations normal_equations(std::span<const Sample> samples, const Vector& lengths, Weigh by) {
  NormalEquations equations;
  for (const Sample& sample : samples) {
    equations.add(features(sample), lengths, weight(sample, by), sample.seconds);
  }
  return equations;
}

// So that the total is the measured one, or the mean relative error none.
void scale_to_samples(LinearCost& line, std::span<const Sample> samples, Weigh by) {
  double measured = 0, predicted = 0;
  for (const Sample& sample : samples) {
    const double w = weight(sample, by) * std::max(sample.seconds, 1e-9);
    measured += w * sample.seconds;
    predicted += w * line.seconds(sample.units, sample.bytes);
  }
  const double scale = predicted > 0 ? measured / predicted : 1;
  line.fixed *= scale, line.per_unit *= scale, line.per_byte *= scale;
}

// Relative error of shape means, weighted by the time they take.
double spread_of(const LinearCost& line, std::span<const Sample> samples) {
  double sum = 0, total = 0;
  for (const Sample& sample : samples) {
    const double time = static_cast<double>(sample.count) * sample.seconds;
    if (time <= 0) continue;
    const double error = line.seconds(sample.units, sample.bytes) / sample.seconds - 1;
    sum += time * error * error;
    total += time;
  }
  return total > 0 ? std::sqrt(sum / total) : 0;
}

// What fit_line minimises, of a fitted line.
double distance(const LinearCost& line, std::span<const Sample> samples, Weigh by) {
  double sum = 0;
  for (const Sample& sample : samples) {
    const double error = line.seconds(sample.units, sample.bytes) - sample.seconds;
    sum += weight(sample, by) * error * error;
  }
  return sum;
}

LinearCost fit(std::span<const Sample> samples, Weigh by, double most_fixed) {
  LinearCost line;
  const Vector lengths = column_lengths(samples, by);
  const Vector x =
      solve_non_negative(normal_equations(samples, lengths, by), most_fixed * lengths[0]);
  line.fixed = x[0] / lengths[0], line.per_unit = x[1] / lengths[1];
  line.per_byte = x[2] / lengths[2];
  for (const Sample& sample : samples) line.samples += sample.count;
  scale_to_samples(line, samples, by);
  line.spread = spread_of(line, samples);
  return line;
}

}  // namespace

LinearCost fit_line(std::span<const Sample> samples, Weigh by) {
  return fit(samples, by, std::numeric_limits<double>::infinity());
}

Terms fit_ones(std::span<const Terms> rows) {
  constexpr int kRounds = 50;
  constexpr double kLeastProduct = 0.1, kLeastError = 1e-4;  // smaller ones weigh no more
  Vector lengths{}, x{};
  for (const Terms& row : rows) {
    for (int i = 0; i < kTerms; ++i) lengths[i] += row[i] * row[i];
  }
  for (double& length : lengths) length = length > 0 ? std::sqrt(length) : 1;
  std::vector<double> weights(rows.size(), 1);
  for (int round = 0; round < kRounds; ++round) {
    NormalEquations equations;
    for (std::size_t r = 0; r < rows.size(); ++r) equations.add(rows[r], lengths, weights[r], 1);
    x = solve_non_negative(equations, std::numeric_limits<double>::infinity());
    for (int i = 0; i < kTerms; ++i) x[i] /= lengths[i];
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const double product = std::inner_product(x.begin(), x.end(), rows[r].begin(), 0.0);
      const double p = std::max(kLeastProduct, product);
      weights[r] = 1 / (p * std::max(kLeastError, std::abs(1 - p) / std::sqrt(p)));
    }
  }
  return x;
}

std::pair<LinearCost, LinearCost> fit_lines(std::span<const Sample> samples, Weigh by,
                                            double most_more_fixed) {
  constexpr std::size_t kLeast = 4;  // shapes on either side: more than a line has coefficients
  constexpr double kGain = 0.9;
  std::pair<LinearCost, LinearCost> best{fit_line(samples, by), {}};
  std::vector<Sample> by_bytes(samples.begin(), samples.end());
  std::ranges::stable_sort(by_bytes, {}, &Sample::bytes);
  // Less than this share of the times is rounding.
  constexpr double kRounding = 1e-12;
  double smallest =
      kGain * distance(best.first, samples, by) - kRounding * distance(LinearCost{}, samples, by);
  for (std::size_t i = kLeast; i + kLeast <= by_bytes.size(); ++i) {
    if (by_bytes[i - 1].bytes == by_bytes[i].bytes) continue;
    const auto below = std::span(by_bytes).first(i), above = std::span(by_bytes).subspan(i);
    std::pair two{fit_line(below, by), LinearCost{}};
    two.second = fit(above, by, two.first.fixed + most_more_fixed);
    // What lies between two shapes goes with the nearer one.
    two.second.from_bytes = std::sqrt(by_bytes[i - 1].bytes * by_bytes[i].bytes);
    const double sum = distance(two.first, below, by) + distance(two.second, above, by);
    if (sum >= smallest) continue;
    smallest = sum;
    best = two;
  }
  return best;
}

}  // namespace zl::sim
