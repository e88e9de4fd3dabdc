// Fill, scaled copy, dropout, columns and random initialisation, in runs of eight elements.
#include <math.h>

#include "backends/cuda/kernel/dropout.h"
#include "core/ops/dropout_spec.h"
#include "core/ops/elementwise.h"

namespace zl::cuda {
namespace {

template <class T>
struct FillBody {
  T* x;
  T value;
  bool packed;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    if (packed && length == kPack<T>) {
      Packed<T> pack;
#pragma unroll
      for (int j = 0; j < kPack<T>; ++j) pack.at[j] = value;
      store_packed(x + first, pack);
    } else {
      for (std::int64_t i = 0; i < length; ++i) x[first + i] = value;
    }
  }
};

template <class T>
void fill(const TensorView& x, T value, const ExecContext& context) {
  launch_runs<kPack<T>>(context, x.count(), FillBody<T>{x.as<T>(), value, aligned_16(x.data)});
}

template <class X, class Y, class A>
struct AxpyBody {
  const X* x;
  Y* y;
  A alpha;
  bool accumulate, packed_x, packed_y;
  const double* factor;  // null: absent

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    A values[kRun], before[kRun] = {};
    load_run(x + first, length, packed_x, values);
    if (accumulate) load_run(y + first, length, packed_y, before);
    const A scale = factor == nullptr ? alpha : static_cast<A>(*factor);
    // One rounding, or the compiler's choice would differ from path to path.
    for (int i = 0; i < kRun; ++i) {
      values[i] = accumulate ? ::fma(scale, values[i], before[i]) : scale * values[i];
    }
    store_run(y + first, length, packed_y, values);
  }
};

template <class X, class Y, class A>
struct DropoutBody {
  const X* x;
  Y* y;
  DropoutSpec spec;
  bool packed_x, packed_y;

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    A values[kRun];
    load_run(x + first, length, packed_x, values);
    apply_dropout(spec, first, values);
    store_run(y + first, length, packed_y, values);
  }
};

// Box & Muller (1958): elements 2j and 2j + 1 of the global index share words 2j and 2j + 1.
struct NormalPair {
  double even, odd;

  __device__ __forceinline__ NormalPair(std::uint32_t first, std::uint32_t second) {
    const double u = (static_cast<double>(first) + 1.0) * 0x1p-32;
    const double radius = ::sqrt(-2.0 * ::log(u));
    ::sincospi(0x1p-31 * static_cast<double>(second), &odd, &even);
    odd *= radius;
    even *= radius;
  }
};

constexpr int kNormals = 4;  // of a thread: Philox makes four words

template <class T>
struct NormalBody {
  T* x;
  RandomNormal op;
  bool packed;

  __device__ __forceinline__ std::uint64_t index(std::int64_t i) const {
    return op.base + static_cast<std::uint64_t>(op.index(i));
  }
  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    const std::uint64_t start = index(first);
    double values[kNormals];
    // Whole pairs, unless the run goes on in another row or starts with half of one.
    const bool in_row = index(first + length - 1) - start == static_cast<std::uint64_t>(length - 1);
    if (in_row && start % 2 == 0) {
      std::uint32_t words[kNormals];
      random_run(op.key, start, words);
#pragma unroll
      for (int i = 0; i < kNormals; i += 2) {
        const NormalPair pair(words[i], words[i + 1]);
        values[i] = op.std * pair.even;
        values[i + 1] = op.std * pair.odd;
      }
    } else {
#pragma unroll
      for (int i = 0; i < kNormals; ++i) {
        values[i] = i < length ? op.std * one(index(first + i)) : 0.0;
      }
    }
    store_run(x + first, length, packed, values);
  }
  __device__ __forceinline__ double one(std::uint64_t index) const {
    const std::uint64_t even = index & ~std::uint64_t{1};
    const NormalPair pair(random_bits(op.key, even), random_bits(op.key, even + 1));
    return index == even ? pair.even : pair.odd;
  }
};

template <class T>
struct ColumnsBody {
  const T* x;
  T* y;
  std::int64_t width, x_stride, y_stride;
  bool whole_runs;  // in one row, and aligned in both

  __device__ void operator()(std::int64_t first, std::int64_t length) const {
    if (whole_runs) {
      const std::int64_t row = first / width, column = first % width;
#pragma unroll
      for (int i = 0; i < kRun; i += kPack<T>) {
        store_packed(y + row * y_stride + column + i, load_packed(x + row * x_stride + column + i));
      }
      return;
    }
    for (std::int64_t i = first; i < first + length; ++i) {
      const std::int64_t row = i / width, column = i % width;
      y[row * y_stride + column] = x[row * x_stride + column];
    }
  }
};

bool has_whole_runs(const CopyColumns& op) {
  const auto whole = [](std::int64_t width) { return width % kRun == 0; };
  return aligned_16(op.x.data(), op.y.data()) && whole(op.x.width) && whole(op.x.stride()) &&
         whole(op.y.stride());
}

}  // namespace

void execute(const Fill& op, const ExecContext& context) {
  if (op.x.dtype == DType::i32) return fill(op.x, static_cast<std::int32_t>(op.value), context);
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, double>) {
      fill(op.x, op.value, context);
    } else {
      fill(op.x, from_float<T>(static_cast<float>(op.value)), context);
    }
  });
}

void execute(const Axpy& op, const ExecContext& context) {
  with_two_types(op.x.dtype, op.y.dtype, op.kName, [&](auto x, auto y, auto a) {
    using X = decltype(x);
    using Y = decltype(y);
    using A = decltype(a);
    launch_runs(
        context, op.x.count(),
        AxpyBody<X, Y, A>{op.x.as<X>(), op.y.as<Y>(), static_cast<A>(op.alpha), op.accumulate,
                          aligned_16(op.x.data), aligned_16(op.y.data), op.factor.as<double>()});
  });
}

void execute(const Dropout& op, const ExecContext& context) {
  with_two_types(op.x.dtype, op.y.dtype, op.kName, [&](auto x, auto y, auto a) {
    using X = decltype(x);
    using Y = decltype(y);
    using A = decltype(a);
    launch_runs(context, op.x.count(),
                DropoutBody<X, Y, A>{op.x.as<X>(), op.y.as<Y>(), op.spec, aligned_16(op.x.data),
                                     aligned_16(op.y.data)});
  });
}

void execute(const RandomNormal& op, const ExecContext& context) {
  with_float_type(op.x.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch_runs<kNormals>(context, op.x.count(),
                          NormalBody<T>{op.x.as<T>(), op, aligned_16(op.x.data)});
  });
}

void execute(const CopyColumns& op, const ExecContext& context) {
  with_float_type(op.x.matrix.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    launch_runs(
        context, op.x.matrix.rows() * op.x.width,
        ColumnsBody<T>{reinterpret_cast<const T*>(op.x.data()), reinterpret_cast<T*>(op.y.data()),
                       op.x.width, op.x.stride(), op.y.stride(), has_whole_runs(op)});
  });
}

}  // namespace zl::cuda
