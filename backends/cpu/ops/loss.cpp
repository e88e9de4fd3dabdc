// The fused classifier and the ordered sum of losses.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/fast_math.h"
#include "backends/cpu/ops/parallel.h"
#include "core/ops/loss.h"

namespace zl::cpu {
namespace {

// Maximum and sum of e^(x - maximum) over one row, kept per lane while blocks stream through.
template <class A>
class OnlineSoftmax {
 public:
  OnlineSoftmax() {
    std::fill(maximum_, maximum_ + kLanes, -std::numeric_limits<A>::infinity());
    std::fill(sum_, sum_ + kLanes, A{0});
  }

  // `values` has room for `count` rounded up to kLanes; the tail is overwritten.
  void add(std::int64_t count, A* __restrict values) {
    const std::int64_t padded = (count + kLanes - 1) / kLanes * kLanes;
    std::fill(values + count, values + padded, -std::numeric_limits<A>::infinity());
    A peak[kLanes];
    std::copy_n(maximum_, kLanes, peak);
    for (std::int64_t i = 0; i < padded; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        peak[lane] = values[i + lane] > peak[lane] ? values[i + lane] : peak[lane];
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) sum_[lane] *= ratio(maximum_[lane], peak[lane]);
    std::copy_n(peak, kLanes, maximum_);
    for (int lane = 0; lane < kLanes; ++lane) {
      // A lane that has seen nothing but -infinity adds e^-infinity, not e^(infinity - infinity).
      peak[lane] = peak[lane] > kLowest ? peak[lane] : A{0};
    }
    for (std::int64_t i = 0; i < padded; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        sum_[lane] += fast_exp(values[i + lane] - peak[lane]);
      }
    }
  }

  A maximum() const { return *std::max_element(maximum_, maximum_ + kLanes); }
  // Of e^(x - maximum()).
  A sum() const {
    const A peak = maximum();
    A total = 0;
    for (int lane = 0; lane < kLanes; ++lane) total += sum_[lane] * ratio(maximum_[lane], peak);
    return total;
  }

 private:
  static constexpr int kLanes = 32;
  static constexpr A kLowest = std::numeric_limits<A>::lowest();
  static A ratio(A from, A to) { return from == to ? A{1} : fast_exp(from - to); }

  A maximum_[kLanes], sum_[kLanes];
};

template <class T>
OnlineSoftmax<Arithmetic<T>> softmax_of(const T* __restrict logits, std::int64_t vocab) {
  using A = Arithmetic<T>;
  A values[kBlock];
  OnlineSoftmax<A> softmax;
  for (std::int64_t first = 0; first < vocab; first += kBlock) {
    const std::int64_t count = std::min(kBlock, vocab - first);
    for (std::int64_t i = 0; i < count; ++i) values[i] = widen<A>(logits[first + i]);
    softmax.add(count, values);
  }
  return softmax;
}

// Of a row over the columns of all ranks.
template <class A>
struct RowTotals {
  A normaliser, score;  // log-sum-exp, and the target's logit
};

// From what each rank knows of it, in the order of the ranks.
template <class A>
RowTotals<A> combined(const TensorView& statistics, std::int64_t rows, std::int64_t r) {
  constexpr std::int64_t kValues = LogitStatistics::kValues;
  const A* first = statistics.as<const A>() + r * kValues;
  const A* end = statistics.as<const A>() + statistics.count();
  A peak = first[0], total = 0, score = 0;
  for (const A* part = first; part < end; part += rows * kValues) peak = std::max(peak, part[0]);
  for (const A* part = first; part < end; part += rows * kValues) {
    if (part[1] > 0) total += part[1] * std::exp(part[0] - peak);
    score += part[2];
  }
  return {peak + std::log(total), score};
}

template <class T>
void statistics_row(const LogitStatistics& op, std::int64_t r) {
  using A = Arithmetic<T>;
  const T* logits = op.logits.as<const T>() + r * op.logits.columns();
  const std::int64_t target = op.targets.as<const std::int32_t>()[r] - op.first_token;
  const OnlineSoftmax<A> softmax = softmax_of(logits, op.vocab);
  A* out = op.statistics.as<A>() + r * LogitStatistics::kValues;
  out[0] = softmax.maximum();
  out[1] = op.vocab > 0 ? softmax.sum() : A{0};
  out[2] = target >= 0 && target < op.vocab ? widen<A>(logits[target]) : A{0};
}

template <class T>
void cross_entropy_row(const CrossEntropy& op, std::int64_t r) {
  using A = Arithmetic<T>;
  const std::int64_t width = op.logits.columns(), target = op.targets.as<const std::int32_t>()[r];
  T* __restrict logits = op.logits.as<T>() + r * width;
  A& loss = op.losses.as<A>()[r];
  if (target < 0) {
    loss = 0;
    if (op.write_gradient) std::fill(logits, logits + width, narrow<T>(A{0}));
    return;
  }
  const std::int64_t place = target - op.first_token;
  const bool has_target = place >= 0 && place < op.vocab;
  const A own = has_target ? widen<A>(logits[place]) : A{0};
  RowTotals<A> row;
  if (op.statistics.empty()) {
    const OnlineSoftmax<A> softmax = softmax_of(logits, op.vocab);
    row = {softmax.maximum() + std::log(softmax.sum()), own};
  } else {
    row = combined<A>(op.statistics, op.logits.rows(), r);
  }
  const A normaliser = row.normaliser, scale = static_cast<A>(op.grad_scale);
  loss = normaliser - row.score;
  if (!op.write_gradient) return;
  for (std::int64_t i = 0; i < op.vocab; ++i) {
    logits[i] = narrow<T>(scale * fast_exp(widen<A>(logits[i]) - normaliser));
  }
  if (has_target) logits[place] = narrow<T>(scale * (fast_exp(own - normaliser) - A{1}));
  std::fill(logits + op.vocab, logits + width, narrow<T>(A{0}));
}

}  // namespace

void execute(const CrossEntropy& op, const ExecContext& context) {
  const std::int64_t grain = rows_worth_a_thread(op.logits.columns());
  with_float_type(op.logits.dtype, op.kName, [&](auto type) {
    parallel_for(context, op.logits.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) cross_entropy_row<decltype(type)>(op, r);
    });
  });
}

void execute(const LogitStatistics& op, const ExecContext& context) {
  const std::int64_t grain = rows_worth_a_thread(op.logits.columns());
  with_float_type(op.logits.dtype, op.kName, [&](auto type) {
    parallel_for(context, op.logits.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) statistics_row<decltype(type)>(op, r);
    });
  });
}

void execute(const Sum& op, const ExecContext&) {
  double total = 0;
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    const T* x = op.x.as<const T>();
    for (std::int64_t i = 0; i < op.x.count(); ++i) total += widen<double>(x[i]);
  });
  total *= op.scale;
  store(op.out, 0, 1, &total, op.accumulate);
}

}  // namespace zl::cpu
