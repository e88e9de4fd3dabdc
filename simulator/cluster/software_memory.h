// What a software holds on a device while it trains, as far as it differs from this project's core.
// Ownership: a value. Threads: value type.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/recompute_config.h"

namespace zl {
class JsonObject;
}

namespace zl::sim {

// How RMSNorm, or GELU, is computed: in separate ops, whose operands autograd keeps, or in one.
enum class Fusion : std::uint8_t { ops, fused };

struct SoftwareMemory {
  // Of 16-bit runs: weights, stream and norms stay in fp32, products take 16-bit copies of weights
  // and inputs. Else everything between two steps of the optimizer is 16-bit.
  bool autocast = false;
  std::vector<int> stages;  // of ZeRO that the software has, in its own words
  int gathers_from = 2;     // the stage from which on units of weights are gathered
  // DeepSpeed's: weights stay gathered as far as the strategy's max_reuse_distance reaches, and are
  // gathered ahead up to its max_live_parameters.
  bool reuses_gathered = false;
  bool model_parallel = false;      // tensor groups and pipelines
  bool offloads = false;            // optimizer, weights and kept inputs to the host
  std::int64_t vocab_multiple = 1;  // to which every tensor rank's part of the vocabulary is padded

  // Bytes for each parameter of 16-bit runs: held always, and beside them while the optimizer
  // steps. Master and moments are sharded from stage 1 on.
  std::int64_t weight = 4, gradient = 4, master = 0, moments = 8, step_scratch = 0;
  std::int64_t norm_scratch = 0;  // of the largest tensor, while the norm of gradients is taken
  std::int64_t buckets = 0;       // flat copies of gradients, where ranks hold the same weights
  std::int64_t reduced = 4;  // of a unit's gradients while they are reduced, where they are sharded
  std::int64_t reduce_bucket = 0;  // for each element of the strategy's bucket, from stage 1 on
  bool flat_gradients = false;     // all of them in one buffer from the start, added to in place
  bool gradient_shards =
      false;  // DeepSpeed's: the optimizer's alone when it steps, of stage 3 always

  bool compiled = false;  // blocks, by Inductor: autograd keeps what its partitioner chooses
  Fusion rms_norm = Fusion::ops;
  Fusion gelu = Fusion::fused;
  bool keeps_scores = false;      // attention is not fused: its probabilities stay
  bool repeats_heads = true;      // grouped keys and values are written out for every head
  bool fused_activation = false;  // of a gate only the two factors and the product stay
  bool attention_mask = false;    // a byte for each pair of a sequence's tokens
  bool dummy_gradients = false;  // one 16-bit gradient that nobody reads for each matrix of a block
  // Where products are recomputed selectively: every so-manieth product without a bias is kept
  // beside attention; 0: none. Of a Llama's block 2 keep half of their FLOPs: k and v, q and the
  // projection, gate and up are alike.
  std::int64_t kept_products = 0;

  // Bytes for each logit while the loss goes backward: what the forward left, and its gradients.
  std::int64_t logits_kept = 4, logits_scratch = 8;
  std::int64_t loss_chunks = 1;  // parts of the rows whose logits are made, and made again, in turn

  // Of libraries in the framework's own allocator. What no tensor is: the driver's context and
  // kernels, buffers of libraries; and what the allocator reserves for each byte that is in use.
  std::int64_t workspace = 0;
  std::int64_t context = 0, library = 0;
  double reserve = 1;  // beside it for a step's gradients, wherever the peak is
  // Relative, of peaks: one standard deviation; of what published runs or counts support, and else.
  double error = 0, unsupported_error = 0;
  std::vector<int> supported_stages;  // of ZeRO
  std::vector<RecomputeMode> supported_recompute;
};

// The section `memory` of a profile. Throws Error{invalid} naming the source and the key.
SoftwareMemory parse_software_memory(JsonObject object);

}  // namespace zl::sim
