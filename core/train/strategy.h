// A training strategy: everything a DeepSpeed configuration can say that the engine honours, made
// of the parts that the folders of the core own. Defaults are DeepSpeed's except
// where a comment says otherwise. Ownership: a value. Threads: immutable while a run uses it.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/parameters.h"
#include "core/model/recompute_config.h"
#include "core/model/sparse_attention_config.h"
#include "core/offload/offload_config.h"
#include "core/optim/loss_scaler_config.h"
#include "core/optim/optimizer_config.h"
#include "core/optim/schedule_config.h"
#include "core/parallel/mesh.h"
#include "core/parallel/precision.h"
#include "core/parallel/tensor_shard.h"
#include "core/pipeline/pipeline_config.h"
#include "core/zero/zero_config.h"

namespace zl {

struct Strategy {
  std::string name = "zero-0";

  ZeroConfig zero;
  PrecisionConfig precision;
  RecomputeConfig recompute;
  SparseAttentionConfig sparse_attention;
  OffloadConfig offload;
  PipelineConfig pipeline;
  TensorConfig tensor;

  // Batch, per rank.
  std::int64_t micro_batch = 1;
  std::int64_t gradient_accumulation = 1;

  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double gradient_clipping = 1.0;  // 0: off
  LossScalerConfig loss_scaler;
  // A tied embedding's weight and gradient are kept twice, as embedding and as head, also where no
  // pipeline needs it: then losses have the bits of a pipeline's.
  bool separate_tied_gradient = false;
  // DeepSpeed updates the loss scale before unscaling; for parity studies only.
  bool deepspeed_scale_order = false;

  bool operator==(const Strategy&) const = default;
};

// The ranks of a run as the strategy lays them out: data parallel, times its pipeline and its
// tensor group. Error{invalid} naming the nearest numbers of ranks when they do not divide them.
Mesh mesh_of(const Strategy& strategy, int ranks);

// What a rank of the pipeline holds: of one with several stages, a tied head apart from the
// embedding; of its tensor group's parts, those of `shard`. Error{invalid} as split_units.
ParameterTable parameters_of(const ModelConfig& model, const Strategy& strategy, int rank,
                             const TensorShard& shard);

// Why an encoder cannot be laid out so, beginning with the key; empty: it can, or is none.
std::string encoder_conflict(const ModelConfig& model, const Strategy& strategy);

// Why the optimizer cannot run over a tensor group; empty: it can.
std::string tensor_conflict(const Strategy& strategy);

// Why shards cannot have copies, beginning with the key; empty: they can.
std::string replicas_conflict(const Strategy& strategy);

// Why blocks are not recomputed stage by stage so, beginning with the key; empty: they can be.
std::string recompute_conflict(const Strategy& strategy);

// Why ranks cannot keep gathered weights in parts (hpZ), beginning with the key; empty: they can.
std::string secondary_conflict(const Strategy& strategy);

// Error{invalid} naming the key where the layouts of block-sparse attention fit neither the model
// nor sequences of this length.
void check_sparse_attention(const Strategy& strategy, const ModelConfig& model,
                            std::int64_t sequence);

// Why the optimizer cannot run under the ZeRO stage, beginning with the stage; empty: it can.
std::string stage_conflict(const Strategy& strategy);

// Error{invalid} naming the key when what is to leave the device does not fit the ZeRO stage, the
// optimizer or the other keys of the strategy.
void check_offload(const Strategy& strategy);

}  // namespace zl
