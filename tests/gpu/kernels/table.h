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
Ceilings measure_ceilings(Bench& bench);

struct Row {
  std::string name;  // what and where: "norm_forward gpt2"
  std::string shape;
  double seconds = 0;
  double achieved = 0;  // bytes/s or, where `compute`, FLOP/s
  double share = 0;     // of the ceiling
  bool compute = false;
};

// All rows; `kinds` gets the kind of every op that was timed.
std::vector<Row> measure_table(Bench& bench, const Ceilings& ceilings,
                               std::vector<std::size_t>& kinds);

struct AttentionCase {
  std::int64_t batch, heads, sequence, head_size;
};
// Causal, bf16, as many key heads as query heads: what PyTorch is compared with.
inline constexpr AttentionCase kAttentionCases[] = {{32, 12, 1024, 64}, {4, 16, 4096, 128}};
struct AttentionSeconds {
  double forward = 0, backward = 0;
};
AttentionSeconds measure_attention(Bench& bench, const AttentionCase& shape);

}  // namespace zl::gpu
