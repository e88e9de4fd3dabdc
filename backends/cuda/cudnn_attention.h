// Attention by cuDNN where it takes the op; the kernels of ops/ take the others.
// A plan may need scratch memory. It comes from the workspace that the rank has lent and never
// exceeds it: ops that would need more run in pieces (cudnn_graph.h). So which kernels ran changes
// no prediction of memory.
// Ownership: owns cuDNN's handle and plans. Threads: one rank's thread, whose current device it
// uses.
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/cudnn_graph.h"
#include "backends/cuda/ops/ops.h"

namespace zl::cuda {

// What ZEROLAB_ATTENTION in the environment asks for: "auto" (or nothing), "zerolab", "cudnn".
enum class AttentionKernels {
  automatic,  // cuDNN, but not its deterministic backward, which works on a few heads at a time
  zerolab,
  cudnn  // whatever it can do; an error where there is none
};
// Throws Error{invalid} that names the variable.
AttentionKernels attention_kernels();

// Which kernels that leaves to attention, and in brackets why: "cuDNN 9.19.0 (...)", "zerolab
// (...)".
std::string describe_attention();

class CudnnAttention {
 public:
  // Throws Error{unavailable} where cuDNN is asked for and missing.
  explicit CudnnAttention(AttentionKernels wanted);
  ~CudnnAttention();

  // Enqueues the op and returns true, or returns false: other ops, masks that are not causal,
  // queries and keys that are not of one packed matrix and sequence, 32-bit types, dropout, head
  // sizes other than 64 and 128, sequences that are no multiple of 64, tensors that are not 16-byte
  // aligned, and what cuDNN has no plan for that fits the workspace.
  bool run(const Op& op, const ExecContext& context);

 private:
  struct Call;
  struct Key {
    std::int64_t batch, sequence, heads, kv_heads, head_size;
    DType dtype;
    double scale;
    bool backward;
    auto operator<=>(const Key&) const = default;
  };
  struct Plans {
    std::int64_t most = 0;  // (sequence, kv head) pairs of a piece; 0: cuDNN does not take the op
    std::map<std::pair<std::int64_t, std::int64_t>, std::unique_ptr<CudnnGraph>> graphs;
  };

  bool takes(const Call& call, const ExecContext& context) const;
  Plans& plans_of(const Call& call, const ExecContext& context);
  void find_plans(Plans& plans, const CudnnProblem& problem, std::int64_t workspace);
  CudnnGraph& graph_of(Plans& plans, const CudnnProblem& problem, const AttentionPiece& piece);

  AttentionKernels wanted_;
  std::unique_ptr<CudnnHandle> handle_;
  std::map<Key, Plans> plans_;
};

}  // namespace zl::cuda
