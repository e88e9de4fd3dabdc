// The fused classifier and the ordered sum of losses.
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

  A log_sum_exp() const {
    A peak = maximum_[0], total = 0;
    for (const A value : maximum_) peak = value > peak ? value : peak;
    for (int lane = 0; lane < kLanes; ++lane) total += sum_[lane] * ratio(maximum_[lane], peak);
    return peak + std::log(total);
  }

 private:
  static constexpr int kLanes = 32;
  static constexpr A kLowest = std::numeric_limits<A>::lowest();
  static A ratio(A from, A to) { return from == to ? A{1} : fast_exp(from - to); }

  A maximum_[kLanes], sum_[kLanes];
};

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
  A values[kBlock];
  OnlineSoftmax<A> softmax;
  for (std::int64_t first = 0; first < op.vocab; first += kBlock) {
    const std::int64_t count = std::min(kBlock, op.vocab - first);
    for (std::int64_t i = 0; i < count; ++i) values[i] = widen<A>(logits[first + i]);
    softmax.add(count, values);
  }
  const A normaliser = softmax.log_sum_exp(), scale = static_cast<A>(op.grad_scale);
  const A score = widen<A>(logits[target]);
  loss = normaliser - score;
  if (!op.write_gradient) return;
  for (std::int64_t i = 0; i < op.vocab; ++i) {
    logits[i] = narrow<T>(scale * fast_exp(widen<A>(logits[i]) - normaliser));
  }
  logits[target] = narrow<T>(scale * (fast_exp(score - normaliser) - A{1}));
  std::fill(logits + op.vocab, logits + width, narrow<T>(A{0}));
}

}  // namespace

void execute(const CrossEntropy& op, const ExecContext& context) {
  with_float_type(op.logits.dtype, op.kName, [&](auto type) {
    parallel_for(context, op.logits.rows(), 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) cross_entropy_row<decltype(type)>(op, r);
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
