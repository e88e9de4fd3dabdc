// Reference ops on vectors, and their sums and norms.
#include "core/ops/op.h"
#include "tests/conformance/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace zl::test {
namespace {

double power_of_two_above(double x) { return std::exp2(std::ceil(std::log2(x))); }

}  // namespace

void reference(const Sum& op) {
  double sum = 0;
  for (Index i = 0; i < op.x.count(); ++i) sum += at(op.x, i);
  put(op.out, 0, op.scale * sum, op.accumulate);
}

void reference(const Fill& op) {
  for (Index i = 0; i < op.x.count(); ++i) {
    if (op.x.dtype == DType::i32) {
      op.x.as<std::int32_t>()[i] = static_cast<std::int32_t>(op.value);
    } else {
      at(op.x, i) = op.value;
    }
  }
}

void reference(const Axpy& op) {
  const double alpha = op.factor.empty() ? op.alpha : at(op.factor, 0);
  for (Index i = 0; i < op.x.count(); ++i) put(op.y, i, alpha * at(op.x, i), op.accumulate);
}

void reference(const CopyColumns& op) {
  for (Index row = 0; row < op.x.matrix.rows(); ++row) {
    for (Index column = 0; column < op.x.width; ++column) {
      at(op.y.matrix, row * op.y.stride() + op.y.first + column) =
          at(op.x.matrix, row * op.x.stride() + op.x.first + column);
    }
  }
}

void reference(const Dropout& op) {
  for (Index i = 0; i < op.x.count(); ++i) at(op.y, i) = at(op.x, i) * dropout_factor(op.spec, i);
}

void reference(const RandomNormal& op) {
  for (Index i = 0; i < op.x.count(); ++i) {
    const Index element = op.first + i;
    const Index place =
        op.columns == 0 ? i : element / op.columns * op.stride + element % op.columns;
    const std::uint64_t index = op.base + static_cast<std::uint64_t>(place), even = index / 2 * 2;
    const double u = std::ldexp(static_cast<double>(random_bits(op.key, even)) + 1.0, -32);
    const double turn = std::ldexp(static_cast<double>(random_bits(op.key, even + 1)), -32);
    const double angle = 2.0 * std::numbers::pi * turn;
    at(op.x, i) = op.std * std::sqrt(-2.0 * std::log(u)) *
                  (index == even ? std::cos(angle) : std::sin(angle));
  }
}

void reference(const AbsMax& op) {
  double largest = op.accumulate ? at(op.out, 0) : 0.0;
  for (Index i = 0; i < op.x.count(); ++i) {
    const double value = std::abs(at(op.x, i));
    largest =
        std::isfinite(value) ? std::max(largest, value) : std::numeric_limits<double>::infinity();
  }
  at(op.out, 0) = largest;
}

void reference(const SquaredSum& op) {
  double coarse = 0, fine = 0;
  if (at(op.bound, 0) > 0) {
    const double top = power_of_two_above(at(op.bound, 0) * at(op.bound, 0));
    const double n = power_of_two_above(static_cast<double>(op.total_count));
    const double q1 = std::ldexp(n * top, -52), q2 = std::ldexp(n * q1, -52);
    for (Index i = 0; i < op.x.count(); ++i) {
      const double square = at(op.x, i) * at(op.x, i);
      const double high = std::rint(square / q1) * q1;
      coarse += high;
      fine += std::rint((square - high) / q2) * q2;
    }
  }
  put(op.out, 0, coarse, op.accumulate);
  put(op.out, 1, fine, op.accumulate);
}

}  // namespace zl::test
