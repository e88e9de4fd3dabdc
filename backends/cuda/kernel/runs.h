// Flat tensors in runs of eight elements: a thread takes a run, reads and writes it in 16-byte
// packs where the addresses allow, and computes each element on its own, so that values do not
// depend on how a tensor is cut. Ownership: nothing. Threads: device code and its launcher.
#pragma once

#include <algorithm>

#include "backends/cuda/kernel/launch.h"
#include "backends/cuda/kernel/packed.h"
#include "backends/cuda/ops/ops.h"

namespace zl::cuda {

inline constexpr int kRun = 8;

// values = the first `length` <= kCount elements from `source`. packed: the address is a multiple
// of 16 bytes, or of the run's if that is shorter.
template <class T, class A, int kCount>
__device__ __forceinline__ void load_run(const T* source, std::int64_t length, bool packed,
                                         A (&values)[kCount]) {
  constexpr int kStep = std::min(kCount, kPack<T>);
  if (packed && length == kCount) {
#pragma unroll
    for (int i = 0; i < kCount; i += kStep) {
      const Packed<T, kStep> pack = load_some<kStep>(source + i);
#pragma unroll
      for (int j = 0; j < kStep; ++j) values[i + j] = static_cast<A>(load_value(pack.at[j]));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = i < length ? static_cast<A>(load_value(source[i])) : A{0};
    }
  }
}

template <class T, class A, int kCount>
__device__ __forceinline__ void store_run(T* target, std::int64_t length, bool packed,
                                          const A (&values)[kCount]) {
  constexpr int kStep = std::min(kCount, kPack<T>);
  if (packed && length == kCount) {
#pragma unroll
    for (int i = 0; i < kCount; i += kStep) {
      Packed<T, kStep> pack;
#pragma unroll
      for (int j = 0; j < kStep; ++j) pack.at[j] = store_value<T>(values[i + j]);
      store_some<kStep>(target + i, pack);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if (i < length) target[i] = store_value<T>(values[i]);
    }
  }
}

template <int kCount, class Body>
__global__ void __launch_bounds__(256) each_run(std::int64_t count, Body body) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t mine = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t first = mine * kCount; first < count; first += threads * kCount) {
    body(first, count - first < kCount ? count - first : kCount);
  }
}

// Calls body(first, length) for the runs of [0, count), of each of `rows`: blockIdx.y. Registers
// leave room for four to eight blocks a multiprocessor: of so many more, a last wave that is not
// full is a small part.
template <int kCount = kRun, class Body>
void launch_runs(const ExecContext& context, std::int64_t count, const Body& body,
                 std::int64_t rows = 1) {
  constexpr int kThreads = 256, kBlocksPerMultiprocessor = 32;
  if (count <= 0 || rows <= 0) return;
  const std::int64_t most = std::int64_t{kBlocksPerMultiprocessor} * context.multiprocessors;
  const std::int64_t blocks = std::min(blocks_for(count, kThreads * kCount), most);
  launch(context.stream, {blocks, rows, kThreads, 0}, each_run<kCount, Body>, count, body);
}

}  // namespace zl::cuda
