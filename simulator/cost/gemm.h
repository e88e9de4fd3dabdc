// Matrix products on a device whose multiprocessors each compute one output tile at a time: time
// steps up when one more tile, or one more wave of tiles, is needed.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "simulator/cluster/device_spec.h"

namespace zl::sim {

// What kernels lose, fitted to the tables of two GPUs; tests/simulator/gemm_test.cpp says how it
// fares on products that were left out of the fit.
struct GemmForm {
  double extra_k = 170;        // to fill and drain a tile's pipeline costs as much as this many k
  double half_tile = 0.7;      // speed of a tile of half the size, which reads its operands again
  double wave_rounding = 0.5;  // a last wave that is not full costs this part of a full one
};

// The fastest of six tile sizes, and of parts of k that multiprocessors without a tile compute;
// multiprocessors = 0, or a vector times a matrix: the rate alone.
double gemm_seconds(std::int64_t m, std::int64_t n, std::int64_t k, const ComputeRate& rate,
                    int multiprocessors, const GemmForm& form = {});

}  // namespace zl::sim
