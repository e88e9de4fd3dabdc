// Matrix products on a device whose multiprocessors each compute one output tile at a time: time
// steps up when one more tile, or one more wave of tiles, is needed.
// Threads: pure functions.
#pragma once

#include <cstdint>

#include "simulator/cluster/device_spec.h"

namespace zl::sim {

// The fastest of six tile sizes; multiprocessors = 0: the rate alone. Against measured GEMMs (bf16,
// three layouts; SimuMax configs/system of MooreThreads, one efficiency per device): mean absolute
// error 3.8 % on 183 A100-PCIe shapes (a constant: 6.7 %), 10.4 % on 514 B200 shapes (a constant:
// 12.3 %).
double gemm_seconds(std::int64_t m, std::int64_t n, std::int64_t k, const ComputeRate& rate,
                    int multiprocessors);

}  // namespace zl::sim
