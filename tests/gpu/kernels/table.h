// Every op of the variant, timed at the shapes of training, and what each is measured against.
// Ownership: values. Threads: one thread.
#pragma once

#include <string>
#include <vector>

#include "tests/gpu/kernels/bench.h"

namespace zl::gpu {

struct Ceilings {
  double copy = 0;                     // bytes/s read and written by a large device copy
  double gemm_bf16 = 0, gemm_f32 = 0;  // FLOP/s of cuBLASLt at 8192^3 on random data
};
// tiny, here and below: toy sizes, for runs that measure nothing.
Ceilings measure_ceilings(Bench& bench, bool tiny = false);

// What bounds a kernel's speed: the copy's bandwidth, the GEMM's rate, or how soon one can start.
enum class Limit { memory, compute, launch };

struct Row {
  std::string name;  // what and where: "norm_forward gpt2-124m"
  std::string shape;
  Limit limit = Limit::memory;
  double seconds = 0;
  double achieved = 0;  // bytes/s or, by `limit`, FLOP/s
  double share = 0;     // of the ceiling; 0 for Limit::launch
};

// At least one row for every op of the variant, named after it.
std::vector<Row> measure_table(Bench& bench, const Ceilings& ceilings, bool tiny = false);

struct AttentionCase {
  std::int64_t batch, heads, sequence, head_size;
};
// Causal, bf16, as many key heads as query heads: what PyTorch is compared with.
inline constexpr AttentionCase kAttentionCases[] = {{32, 12, 1024, 64}, {4, 16, 4096, 128}};
inline constexpr AttentionCase kTinyAttentionCases[] = {{1, 1, 64, 64}, {1, 1, 64, 128}};
struct AttentionSeconds {
  double forward = 0, backward = 0;
};
AttentionSeconds measure_attention(Bench& bench, const AttentionCase& shape);

}  // namespace zl::gpu
