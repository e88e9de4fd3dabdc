// Teams of warps that take a row of a matrix each and hold it in registers, a few packs a thread.
// Ownership: nothing. Threads: device code and its launcher.
#pragma once

#include "backends/cuda/kernel/packed.h"
#include "backends/cuda/kernel/reduce.h"

namespace zl::cuda {

inline constexpr int kTeamPacks = 3;      // of a row that a thread holds
inline constexpr int kTeamBlock = 256;    // threads, unless one team needs more
inline constexpr int kTeamThreads = 512;  // most threads of a team

// Warps of a team for rows of `columns` elements, a power of two; 0 when a row is too long for one
// or is not made of whole packs.
template <class T>
int team_warps(std::int64_t columns) {
  const std::int64_t packs = columns / kPack<T>;
  if (columns % kPack<T> != 0 || packs > kTeamPacks * kTeamThreads) return 0;
  int warps = 1;
  while (std::int64_t{kTeamPacks} * 32 * warps < packs) warps *= 2;
  return warps;
}
inline int team_block(int warps) { return 32 * warps > kTeamBlock ? 32 * warps : kTeamBlock; }

struct Team {
  int warps, index, rank;  // index of the team in its block, of the thread in its team
  __device__ explicit Team(int warps_of_each)
      : warps(warps_of_each),
        index(static_cast<int>(threadIdx.x) / (32 * warps_of_each)),
        rank(static_cast<int>(threadIdx.x) % (32 * warps_of_each)) {}
  // Column of the thread's k-th pack.
  template <class T>
  __device__ __forceinline__ int column(int k) const {
    return (k * 32 * warps + rank) * kPack<T>;
  }
};

// values[i] = sum over the team, in one fixed order. Every thread of the block must call; scratch:
// shared memory of 32 * kCount elements.
template <int kCount, class A>
__device__ __forceinline__ void team_sums(const Team& team, A* scratch, A (&values)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = warp_reduce(values[i], AddOf{});
  if (team.warps == 1) return;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  __syncthreads();  // the previous sums have been read
  if (threadIdx.x % 32 == 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) scratch[warp * kCount + i] = values[i];
  }
  __syncthreads();
  const A* first = scratch + team.index * team.warps * kCount;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    values[i] = first[i];
    for (int other = 1; other < team.warps; ++other) values[i] += first[other * kCount + i];
  }
}

}  // namespace zl::cuda
