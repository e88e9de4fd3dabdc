// Packing of signs, a byte a thread, and unpacking, half a byte a thread: what a warp writes at
// once has no gaps.
#include <math.h>

#include "backends/cuda/kernel/flat.h"
#include "core/ops/compress.h"

namespace zl::cuda {
namespace {

// Where the run at `first` of the block's row lies.
struct PackedRun {
  std::int64_t start;  // of its elements
  std::int64_t byte;   // in the message
  std::int64_t real;   // elements that are not padding

  __device__ PackedRun(std::int64_t first, std::int64_t length, std::int64_t columns,
                       std::int64_t count)
      : start(blockIdx.y * columns + first),
        byte(blockIdx.y * packed_bytes(columns) + first / kRun),
        real(count < start            ? 0
             : count - start < length ? count - start
                                      : length) {}
};

// The signs of a run of four, of which the byte has two.
struct FourSigns {
  unsigned bits;

  __device__ __forceinline__ FourSigns(unsigned byte, std::int64_t first)
      : bits(byte >> (first % kRun == 0 ? 4 : 0)) {}
  __device__ __forceinline__ float of(float scale, int i) const {
    return (bits >> (kFlatRun - 1 - i)) & 1 ? scale : -scale;
  }
};

// A row begins at a whole pack when its length is a multiple of four.
bool rows_aligned(const TensorView& view) {
  return aligned_16(view.data) && (view.rows() == 1 || view.columns() % 4 == 0);
}

struct CompressBody {
  float* x;
  const double* square;
  std::uint8_t* packed_signs;
  float* scale_out;
  std::int64_t columns, count;
  double square_count;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    const auto scale = static_cast<float>(::sqrt((square[0] + square[1]) / square_count));
    if (first == 0 && blockIdx.y == 0) *scale_out = scale;
    const PackedRun run(first, length, columns, count);
    float values[kRun];
    load_run(x + run.start, run.real, packed, values);
    unsigned byte = 0;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const bool positive = values[i] >= 0;
      if (positive && i < run.real) byte |= 1u << (7 - i);
      values[i] -= positive ? scale : -scale;
    }
    store_run(x + run.start, run.real, packed, values);
    packed_signs[run.byte] = static_cast<std::uint8_t>(byte);
  }
};

struct AverageBody {
  const std::uint8_t* packed_signs;
  const float* scales;
  float* out;
  std::int64_t rows, row_bytes, stride, columns, count;
  float share;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    const PackedRun run(first, length, columns, count);
    float sums[kFlatRun] = {}, values[kFlatRun];
    load_run(out + run.start, run.real, packed, values);
#pragma unroll 8
    for (std::int64_t row = 0; row < rows; ++row) {
      const FourSigns signs(packed_signs[row * row_bytes + run.byte], first);
      const float scale = scales[row * stride];
#pragma unroll
      for (int i = 0; i < kFlatRun; ++i) sums[i] += signs.of(scale, i);
    }
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) values[i] = ::fmaf(sums[i], share, values[i]);
    store_run(out + run.start, run.real, packed, values);
  }
};

struct UnpackBody {
  const std::uint8_t* packed_signs;
  const float* scales;
  float* out;
  std::int64_t stride, columns, count;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    const PackedRun run(first, length, columns, count);
    const FourSigns signs(packed_signs[run.byte], first);
    const float scale = scales[blockIdx.y * stride];
    float values[kFlatRun];
#pragma unroll
    for (int i = 0; i < kFlatRun; ++i) values[i] = i < run.real ? signs.of(scale, i) : 0.0f;
    store_run(out + run.start, length, packed, values);
  }
};

}  // namespace

void execute(const SignCompress& op, const ExecContext& context) {
  launch_runs(context, op.x.columns(),
              CompressBody{op.x.as<float>(), op.square.as<double>(), op.packed.as<std::uint8_t>(),
                           op.scale.as<float>(), op.x.columns(), op.count,
                           static_cast<double>(op.square_count), rows_aligned(op.x)},
              op.x.rows());
}

void execute(const SignAverage& op, const ExecContext& context) {
  launch_runs<kFlatRun>(
      context, op.out.count(),
      AverageBody{op.packed.as<std::uint8_t>(), op.scales.as<float>() + op.column,
                  op.out.as<float>(), op.packed.rows(), op.packed.columns(), op.scales.columns(),
                  op.out.count(), op.count, 1.0f / static_cast<float>(op.packed.rows()),
                  aligned_16(op.out.data)});
}

void execute(const SignUnpack& op, const ExecContext& context) {
  launch_runs<kFlatRun>(context, op.out.columns(),
                        UnpackBody{op.packed.as<std::uint8_t>(), op.scales.as<float>() + op.column,
                                   op.out.as<float>(), op.scales.columns(), op.out.columns(),
                                   op.count, rows_aligned(op.out)},
                        op.out.rows());
}

}  // namespace zl::cuda
