// What ZeRO shards and when it gathers, and how gradients are reduced. Sizes count elements. Names
// and defaults are DeepSpeed's except where a comment says otherwise.
// Ownership: values. Threads: immutable while a run uses them.
#pragma once

#include <cstdint>

#include "core/offload/placement.h"
#include "core/parallel/precision.h"

namespace zl {

struct ZeroConfig {
  int stage = 0;              // 0: plain data parallelism; 1 to 3
  bool overlap_comm = false;  // DeepSpeed: null -> true only for stage 3
  std::int64_t reduce_bucket_size = 500'000'000;
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t model_persistence_threshold = INT64_MAX;
  std::int64_t max_live_parameters = 1'000'000'000;
  // A unit whose next use lies within this many elements stays gathered. 0: the textbook schedule,
  // one gather for the forward and one for the backward of every unit (3 Psi in total).
  std::int64_t max_reuse_distance = 1'000'000'000;

  bool prescale_gradients = false;
  double gradient_predivide_factor = 1.0;
  bool sum_gradients = false;  // gradient_allreduce_op: sum
  // HSDP, MiCS (Zhang et al. 2022): so many copies of the shards, each over neighbouring ranks;
  // their gradients are averaged over the copies once a step. 1: one cut over all data-parallel
  // ranks.
  std::int64_t replicas = 1;
  // ZeRO++'s hpZ (Wang et al. 2023), stage 3: so many neighbouring ranks keep what a forward
  // gathered in parts, of which its backward is gathered. 1: backwards gather from all.
  std::int64_t secondary_partition = 1;
  // ZeRO++: what crosses the wire in blocks of signed bytes.
  bool quantized_weights = false;    // stage 3's gathers
  bool quantized_gradients = false;  // reduce-scatters (stages 1 to 3)

  bool operator==(const ZeroConfig&) const = default;
};

// What the stores of weights and gradients are built from. Ownership: refers to a strategy's parts
// and to what was made of them once, which outlive the stores.
struct StoreConfig {
  const ZeroConfig& zero;
  const PrecisionConfig& precision;
  const OffloadConfig& offload;
  const Placement& placement;
  std::int64_t gradient_accumulation = 1;
};

}  // namespace zl
