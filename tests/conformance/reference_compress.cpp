// Reference ops of one-bit messages and of blocks of int8.
#include "core/ops/compress.h"
#include "core/ops/quantize.h"
#include "tests/conformance/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace zl::test {
namespace {

// Tensors of bytes are f64 here too: one number a byte.
bool sign_bit(const TensorView& packed, Index row, Index i) {
  const auto byte = static_cast<unsigned>(at(packed, row * packed.columns() + i / 8));
  return (byte >> (7 - i % 8)) & 1;
}

double signed_byte(const TensorView& q, Index i) {
  const double byte = at(q, i);
  return byte < 128 ? byte : byte - 256;
}

}  // namespace

void reference(const SignCompress& op) {
  const double scale =
      std::sqrt((at(op.square, 0) + at(op.square, 1)) / static_cast<double>(op.square_count));
  at(op.scale, 0) = scale;
  for (Index i = 0; i < op.packed.count(); ++i) at(op.packed, i) = 0;
  for (Index i = 0; i < op.count; ++i) {
    const Index row = i / op.x.columns(), column = i % op.x.columns();
    const bool positive = at(op.x, i) >= 0;
    at(op.x, i) -= positive ? scale : -scale;
    if (positive) at(op.packed, row * op.packed.columns() + column / 8) += 128 >> column % 8;
  }
}

void reference(const SignAverage& op) {
  for (Index i = 0; i < op.count; ++i) {
    double sum = 0;
    for (Index row = 0; row < op.packed.rows(); ++row) {
      const double scale = at(op.scales, row * op.scales.columns() + op.column);
      sum += sign_bit(op.packed, row, i) ? scale : -scale;
    }
    at(op.out, i) += sum / static_cast<double>(op.packed.rows());
  }
}

void reference(const SignUnpack& op) {
  for (Index i = 0; i < op.out.count(); ++i) {
    const Index row = i / op.out.columns(), column = i % op.out.columns();
    const double scale = at(op.scales, row * op.scales.columns() + op.column);
    at(op.out, i) = i >= op.count ? 0 : sign_bit(op.packed, row, column) ? scale : -scale;
  }
}

// The quotient in f32, as the op says: in f64 ties would fall to another side.
void reference(const BlockQuantize& op) {
  const Index columns = op.q.columns(), blocks = op.scales.columns();
  for (Index row = 0; row < op.q.rows(); ++row) {
    for (Index block = 0; block < blocks; ++block) {
      const Index begin = row * columns + block * op.block;
      const Index end = std::min(begin + op.block, (row + 1) * columns);
      float largest = 0;
      bool finite = true;
      for (Index i = begin; i < end; ++i) {
        finite = finite && std::isfinite(at(op.x, i));
        if (finite) largest = std::max(largest, static_cast<float>(std::abs(at(op.x, i))));
      }
      at(op.scales, row * blocks + block) =
          finite ? double{largest} / 127 : std::numeric_limits<double>::infinity();
      const float inverse = finite && largest > 0 ? 127.0f / largest : 0.0f;
      for (Index i = begin; i < end; ++i) {
        const double q = finite ? std::nearbyint(static_cast<float>(at(op.x, i)) * inverse) : 0;
        at(op.q, i) = q < 0 ? q + 256 : q;
      }
    }
  }
}

void reference(const BlockDequantize& op) {
  const Index columns = op.q.columns(), blocks = op.scales.columns();
  for (Index i = 0; i < op.q.count(); ++i) {
    at(op.y, i) =
        signed_byte(op.q, i) * at(op.scales, i / columns * blocks + i % columns / op.block);
  }
}

void reference(const BlockSum& op) {
  const Index columns = op.q.columns(), blocks = op.scales.columns();
  for (Index i = 0; i < columns; ++i) {
    double sum = 0;
    for (Index row = 0; row < op.q.rows(); ++row) {
      sum += signed_byte(op.q, row * columns + i) * at(op.scales, row * blocks + i / op.block);
    }
    put(op.out, i, op.factor * sum, op.accumulate);
  }
}

}  // namespace zl::test
