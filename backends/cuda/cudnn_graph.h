// One attention computation as a graph of cuDNN's frontend (scaled dot-product attention, SDPA),
// and the plan that runs it. Only cudnn_graph.cpp sees the frontend's headers, which CMake may not
// find. Ownership: a CudnnHandle owns cuDNN's handle, a CudnnGraph its plan; tensors and scratch
// memory are the caller's. Threads: one rank's thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/kernel/stream.h"
#include "core/ops/attention.h"

namespace zl::cuda {

// Why cuDNN cannot be used: built without its frontend, or no library. "" when it can. Looked up
// once.
const std::string& cudnn_missing();
std::string cudnn_version();  // "9.19.0"; only when nothing is missing

// What a graph computes, of a whole op.
struct CudnnProblem {
  AttentionShape shape;
  DType dtype = DType::bf16;
  double scale = 1;
  bool backward = false, deterministic = true;
};

// Part of an op: sequences [batch, batch + batches) and kv heads [kv_head, kv_head + kv_heads) with
// the query heads that read them. Attention mixes neither, so parts are computed on their own.
struct AttentionPiece {
  std::int64_t batch = 0, kv_head = 0, batches = 0, kv_heads = 0;
};

// The op in pieces of at most `most` (sequence, kv head) pairs: whole sequences where they fit.
std::vector<AttentionPiece> cut(const AttentionShape& shape, std::int64_t most);

// A piece's [batch, head, position, element] in one of the op's tensors: where it begins and how
// far its neighbours are apart, in elements.
struct HeadTensor {
  std::int64_t offset = 0;
  std::array<std::int64_t, 4> shape{}, stride{};
};
enum class HeadPart { query, key, value, out, statistics };  // statistics: lse, one element wide
HeadTensor head_tensor(const AttentionShape& shape, const AttentionPiece& piece, HeadPart part);

// The tensors of AttentionForward, and of AttentionBackward in addition.
struct AttentionTensors {
  std::byte *qkv = nullptr, *out = nullptr, *lse = nullptr, *dout = nullptr, *dqkv = nullptr;
};

class CudnnHandle {
 public:
  // Of the current device. Throws Error{failed}.
  CudnnHandle();
  ~CudnnHandle();
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;

  void* get() const { return handle_; }           // cudnnHandle_t
  int capability() const { return capability_; }  // 90 for 9.0

 private:
  void* handle_ = nullptr;
  int capability_ = 0;
};

class CudnnGraph {
 public:
  // Builds and validates the graph of pieces of this size, which needs no GPU. capability: of
  // the GPU, 90 for 9.0. Throws Error{failed} with cuDNN's reason.
  CudnnGraph(const CudnnProblem& problem, const AttentionPiece& size, int capability);
  ~CudnnGraph();

  // Asks whether cuDNN has a plan for it on a GPU that need not be here. properties: of that GPU,
  // the JSON of CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. cuDNN wants some libcuda.so.1 loaded all
  // the same. Throws Error{failed} with its reason.
  void check_support(const std::string& properties);

  // Chooses and compiles an algorithm for the handle's device. Throws Error{failed}.
  void plan(const CudnnHandle& handle);
  std::int64_t workspace() const;  // bytes that run() needs, once planned

  // Enqueues. `piece` has the size of the graph's.
  void run(const CudnnHandle& handle, Stream stream, const AttentionTensors& tensors,
           const AttentionPiece& piece, std::byte* workspace);

 private:
  struct Frontend;
  CudnnProblem problem_;
  std::unique_ptr<Frontend> frontend_;
};

}  // namespace zl::cuda
