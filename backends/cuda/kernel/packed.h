// Sixteen bytes of a tensor at once, or eight. Ownership: nothing. Threads: device code.
#pragma once

#include "backends/cuda/kernel/convert.h"

namespace zl::cuda {

template <class T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

template <class T, int kCount = kPack<T>>
union Packed {
  std::conditional_t<kCount * sizeof(T) == 16, uint4, uint2> raw;
  T at[kCount];
  __device__ Packed() : raw{} {}
};

template <class T>
__device__ __forceinline__ Packed<T> load_packed(const T* address) {
  Packed<T> pack;
  pack.raw = load_16(address);
  return pack;
}
template <class T>
__device__ __forceinline__ Packed<T> load_packed_streaming(const T* address) {
  Packed<T> pack;
  pack.raw = load_16_streaming(address);
  return pack;
}
template <class T>
__device__ __forceinline__ void store_packed(T* address, const Packed<T>& pack) {
  store_16(address, pack.raw);
}
// kCount elements, of 16 or of 8 bytes.
template <int kCount, class T>
__device__ __forceinline__ Packed<T, kCount> load_some(const T* address) {
  Packed<T, kCount> pack;
  if constexpr (kCount == kPack<T>) {
    pack.raw = load_16(address);
  } else {
    pack.raw = load_8(address);
  }
  return pack;
}
template <int kCount, class T>
__device__ __forceinline__ void store_some(T* address, const Packed<T, kCount>& pack) {
  if constexpr (kCount == kPack<T>) {
    store_16(address, pack.raw);
  } else {
    store_8(address, pack.raw);
  }
}
template <class T>
__device__ __forceinline__ void store_packed_streaming(T* address, const Packed<T>& pack) {
  store_16_streaming(address, pack.raw);
}

// f(index, pack) for the packs first, first + stride, ... below `packs`; kAhead loads at a time are
// under way.
template <int kAhead, class T, class F>
__device__ __forceinline__ void for_packs(const T* source, std::int64_t packs, std::int64_t first,
                                          std::int64_t stride, F&& f) {
  for (; first < packs; first += kAhead * stride) {
    Packed<T> pack[kAhead];
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const std::int64_t i = first + j * stride;
      if (i < packs) pack[j] = load_packed(source + i * kPack<T>);
    }
#pragma unroll
    for (int j = 0; j < kAhead; ++j) {
      const std::int64_t i = first + j * stride;
      if (i < packs) f(i, pack[j]);
    }
  }
}

// Whether every address can be read in packs (null ones do not matter).
template <class... Pointers>
bool aligned_16(const Pointers*... addresses) {
  return ((reinterpret_cast<std::uintptr_t>(addresses) % 16 == 0) && ...);
}

}  // namespace zl::cuda
