// Packing and unpacking of signs: a thread takes one packed byte, eight elements.
#include <math.h>

#include "backends/cuda/kernel/runs.h"
#include "core/ops/compress.h"

namespace zl::cuda {
namespace {

// Where a run of eight elements, counted over the padded rows of a packed message, lies.
struct PackedRun {
  std::int64_t row, column;  // of the first element
  std::int64_t byte;         // in the message
  std::int64_t length;       // elements of the run that belong to the row
  std::int64_t real;         // of these, not padding

  __device__ PackedRun(std::int64_t first, std::int64_t columns, std::int64_t count) {
    const std::int64_t row_bytes = packed_bytes(columns);
    byte = first / kRun;
    row = byte / row_bytes;
    column = byte % row_bytes * kRun;
    length = columns - column < kRun ? columns - column : kRun;
    const std::int64_t left = count - row * columns - column;
    real = left < 0 ? 0 : left < length ? left : length;
  }
};

__device__ __forceinline__ bool is_positive(unsigned byte, int i) { return (byte >> (7 - i)) & 1; }

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

  __device__ void operator()(std::int64_t first, std::int64_t) const {
    const auto scale = static_cast<float>(::sqrt((square[0] + square[1]) / square_count));
    if (first == 0) *scale_out = scale;
    const PackedRun run(first, columns, count);
    float values[kRun];
    float* source = x + run.row * columns + run.column;
    load_run(source, run.real, packed, values);
    unsigned byte = 0;
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const bool positive = values[i] >= 0;
      if (positive && i < run.real) byte |= 1u << (7 - i);
      values[i] -= positive ? scale : -scale;
    }
    store_run(source, run.real, packed, values);
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

  __device__ void operator()(std::int64_t first, std::int64_t) const {
    const PackedRun run(first, columns, count);
    float sums[kRun] = {}, values[kRun];
    for (std::int64_t row = 0; row < rows; ++row) {
      const unsigned byte = packed_signs[row * row_bytes + run.byte];
      const float scale = scales[row * stride];
#pragma unroll
      for (int i = 0; i < kRun; ++i) sums[i] += is_positive(byte, i) ? scale : -scale;
    }
    load_run(out + run.column, run.real, packed, values);
#pragma unroll
    for (int i = 0; i < kRun; ++i) values[i] = ::fmaf(sums[i], share, values[i]);
    store_run(out + run.column, run.real, packed, values);
  }
};

struct UnpackBody {
  const std::uint8_t* packed_signs;
  const float* scales;
  float* out;
  std::int64_t stride, columns, count;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t) const {
    const PackedRun run(first, columns, count);
    const unsigned byte = packed_signs[run.byte];
    const float scale = scales[run.row * stride];
    float values[kRun];
#pragma unroll
    for (int i = 0; i < kRun; ++i) {
      values[i] = i < run.real ? (is_positive(byte, i) ? scale : -scale) : 0.0f;
    }
    store_run(out + run.row * columns + run.column, run.length, packed, values);
  }
};

}  // namespace

void execute(const SignCompress& op, const ExecContext& context) {
  launch_runs(context, op.packed.count() * kRun,
              CompressBody{op.x.as<float>(), op.square.as<double>(), op.packed.as<std::uint8_t>(),
                           op.scale.as<float>(), op.x.columns(), op.count,
                           static_cast<double>(op.square_count), rows_aligned(op.x)});
}

void execute(const SignAverage& op, const ExecContext& context) {
  launch_runs(context, op.packed.columns() * kRun,
              AverageBody{op.packed.as<std::uint8_t>(), op.scales.as<float>() + op.column,
                          op.out.as<float>(), op.packed.rows(), op.packed.columns(),
                          op.scales.columns(), op.out.count(), op.count,
                          1.0f / static_cast<float>(op.packed.rows()), aligned_16(op.out.data)});
}

void execute(const SignUnpack& op, const ExecContext& context) {
  launch_runs(context, op.packed.count() * kRun,
              UnpackBody{op.packed.as<std::uint8_t>(), op.scales.as<float>() + op.column,
                         op.out.as<float>(), op.scales.columns(), op.out.columns(), op.count,
                         rows_aligned(op.out)});
}

}  // namespace zl::cuda
