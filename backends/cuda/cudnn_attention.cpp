#include "backends/cuda/cudnn_attention.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/ops/attention.h"
#include "core/ops/op.h"

namespace zl::cuda {

AttentionKernels attention_kernels() {
  const char* value = std::getenv("ZEROLAB_ATTENTION");
  const std::string asked = value == nullptr || *value == '\0' ? "auto" : value;
  if (asked == "auto") return AttentionKernels::automatic;
  if (asked == "zerolab") return AttentionKernels::zerolab;
  if (asked == "cudnn") return AttentionKernels::cudnn;
  throw Error(ErrorCode::invalid,
              "ZEROLAB_ATTENTION: " + asked + " is not one of auto, zerolab, cudnn");
}

std::string describe_attention() {
  if (attention_kernels() == AttentionKernels::zerolab) return "zerolab (ZEROLAB_ATTENTION)";
  if (!cudnn_missing().empty()) return "zerolab (" + cudnn_missing() + ")";
  return "cuDNN " + cudnn_version() + " (zerolab: what it does not take)";
}

struct CudnnAttention::Call {
  CudnnProblem problem;
  AttentionTensors tensors;
  float dropout = 0;
  bool plain = false;

  Call(const AttentionForward& op, bool deterministic)
      : problem{op.shape, op.qkv.dtype(), op.scale, false, deterministic},
        tensors{op.qkv.q.data(), op.out.data, op.lse.data, nullptr, nullptr},
        dropout(op.dropout.p),
        plain(is_plain(op.shape, op.mask, op.qkv)) {}
  Call(const AttentionBackward& op, bool deterministic)
      : problem{op.shape, op.qkv.dtype(), op.scale, true, deterministic},
        tensors{op.qkv.q.data(), op.out.data, op.lse.data, op.dout.data, op.dqkv.q.data()},
        dropout(op.dropout.p),
        plain(is_plain(op.shape, op.mask, op.qkv) && op.dqkv.is_packed(op.shape)) {}

  // The graphs are for causal attention of a sequence with itself, packed.
  static bool is_plain(const AttentionShape& shape, const AttentionMask& mask,
                       const QkvViews& qkv) {
    return mask.kind == AttentionMaskKind::causal && shape.key_count() == shape.sequence &&
           shape.first_position == 0 && qkv.is_packed(shape);
  }

  Key key() const {
    const AttentionShape& s = problem.shape;
    return {s.batch,     s.sequence,    s.heads,       s.kv_heads,
            s.head_size, problem.dtype, problem.scale, problem.backward};
  }
  bool aligned() const {
    std::uintptr_t bits = 0;
    for (const std::byte* each :
         {tensors.qkv, tensors.out, tensors.lse, tensors.dout, tensors.dqkv}) {
      bits |= reinterpret_cast<std::uintptr_t>(each);
    }
    return bits % 16 == 0;
  }
};

CudnnAttention::CudnnAttention(AttentionKernels wanted) : wanted_(wanted) {
  if (wanted == AttentionKernels::cudnn && !cudnn_missing().empty()) {
    throw Error(ErrorCode::unavailable, "ZEROLAB_ATTENTION=cudnn: " + cudnn_missing());
  }
}

CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::run(const Op& op, const ExecContext& context) {
  const auto* forward = std::get_if<AttentionForward>(&op);
  const auto* backward = std::get_if<AttentionBackward>(&op);
  if (forward == nullptr && backward == nullptr) return false;
  const Call call = forward != nullptr ? Call(*forward, context.deterministic)
                                       : Call(*backward, context.deterministic);
  if (!takes(call, context)) return false;
  Plans& plans = plans_of(call, context);
  for (const AttentionPiece& piece : cut(call.problem.shape, plans.most)) {
    graph_of(plans, call.problem, piece)
        .run(*handle_, context.stream, call.tensors, piece, context.workspace);
  }
  return plans.most > 0;
}

bool CudnnAttention::takes(const Call& call, const ExecContext& context) const {
  const auto& [shape, dtype, scale, backward, deterministic] = call.problem;
  if (wanted_ == AttentionKernels::zerolab || !cudnn_missing().empty()) return false;
  if (wanted_ == AttentionKernels::automatic && backward && deterministic) return false;
  return (dtype == DType::bf16 || dtype == DType::f16) && call.dropout == 0 && call.plain &&
         shape.batch > 0 && shape.sequence > 0 && shape.sequence % 64 == 0 &&
         (shape.head_size == 64 || shape.head_size == 128) && call.aligned() &&
         context.workspace != nullptr;
}

CudnnAttention::Plans& CudnnAttention::plans_of(const Call& call, const ExecContext& context) {
  const auto [place, is_new] = plans_.try_emplace(call.key());
  Plans& plans = place->second;
  if (!is_new) return plans;
  try {
    find_plans(plans, call.problem, context.workspace_bytes);
  } catch (const Error& error) {
    plans = {};
    const auto log = wanted_ == AttentionKernels::cudnn ? log_warning : log_info;
    log("attention runs on zerolab's kernels: " + std::string(error.what()));
  }
  return plans;
}

namespace {

// What plans of cuDNN 9.19 for sm_90 need for a kv head of a sequence: dQ in f32 or, deterministic,
// the gradients of the scores in 16 bits; row sums; with several query heads to a kv head their dK
// and dV. A plan takes 256 bytes more.
std::int64_t expected_workspace(const CudnnProblem& problem) {
  if (!problem.backward) return 0;
  const AttentionShape& s = problem.shape;
  const std::int64_t group = s.heads / s.kv_heads, keys = (s.sequence + 127) / 128 * 128;
  const std::int64_t query_bytes = problem.deterministic ? 2 * keys : 4 * s.head_size;
  const std::int64_t head_bytes = group > 1 ? 4 * s.head_size : 0;
  return group * s.sequence * (query_bytes + head_bytes + 4);
}

}  // namespace

// The largest pieces whose plan fits the workspace: as many as expected to, then fewer.
void CudnnAttention::find_plans(Plans& plans, const CudnnProblem& problem, std::int64_t workspace) {
  if (handle_ == nullptr) handle_ = std::make_unique<CudnnHandle>();
  std::int64_t most = problem.shape.batch * problem.shape.kv_heads;
  const std::int64_t expected = expected_workspace(problem);
  if (expected > 0) most = std::clamp<std::int64_t>((workspace - 256) / expected, 1, most);
  while (most > 0) {
    const AttentionPiece largest = cut(problem.shape, most).front();
    const std::int64_t bytes = graph_of(plans, problem, largest).workspace();
    if (bytes <= workspace) break;
    plans.graphs.clear();
    const std::int64_t pairs = largest.batches * largest.kv_heads;
    const double share = static_cast<double>(workspace) / static_cast<double>(bytes);
    most = std::min(pairs - 1, static_cast<std::int64_t>(share * static_cast<double>(pairs)));
  }
  if (most == 0) {
    throw Error(ErrorCode::failed, "cuDNN has no plan that fits a workspace of " +
                                       std::to_string(workspace) + " bytes");
  }
  for (const AttentionPiece& piece : cut(problem.shape, most)) {  // the last may be smaller
    ZL_CHECK(graph_of(plans, problem, piece).workspace() <= workspace, "smaller pieces need less");
  }
  plans.most = most;
}

CudnnGraph& CudnnAttention::graph_of(Plans& plans, const CudnnProblem& problem,
                                     const AttentionPiece& piece) {
  std::unique_ptr<CudnnGraph>& graph = plans.graphs[{piece.batches, piece.kv_heads}];
  if (graph == nullptr) {
    auto made = std::make_unique<CudnnGraph>(problem, piece, handle_->capability());
    made->plan(*handle_);
    graph = std::move(made);
  }
  return *graph;
}

}  // namespace zl::cuda
