// Small training runs on the CUDA backend, and on the recording device that is its twin.
#pragma once

#include "backends/cpu/device.h"
#include "backends/cuda/availability.h"
#include "backends/cuda/world.h"
#include "tests/engine/runs.h"

namespace zl::test {

struct ModelSize {
  std::int64_t layers, hidden, heads, kv_heads, ffn, vocab, sequence;
};

// A tiny model in another size: smaller where kernels run in fibers, wider for tensor cores.
inline ModelConfig resized(ModelConfig model, const ModelSize& size) {
  model.layers = size.layers;
  model.hidden = size.hidden;
  model.heads = size.heads;
  model.kv_heads = size.kv_heads;
  model.head_size = size.hidden / size.heads;
  model.ffn = size.ffn;
  model.vocab = size.vocab;
  model.max_sequence = size.sequence;
  return model;
}

// Relative difference of a loss on the GPU and on the CPU, over up to 50 steps.
inline double allowed_difference(DType dtype) { return dtype == DType::f32 ? 1e-4 : 2e-2; }

// host_ops: how the host's part of offload runs.
inline Finished run_cuda(int ranks, const ModelConfig& model, const Strategy& strategy,
                         ProgramOptions options, const cuda::HostOps& host_ops = cpu::run_op) {
  if (!options.make_storage) {
    options.make_storage = [](const Strategy& s, int rank) {
      return cpu::make_file_storage(s.offload.nvme_path, rank, s.offload.aio);
    };
  }
  return run(*cuda::make_world({ranks, 1}, host_ops), model, strategy, options);
}

// With the library workspace of a GPU.
inline Finished run_twin(int ranks, const ModelConfig& model, const Strategy& strategy,
                         ProgramOptions options) {
  options.make_storage = [](const Strategy&, int) { return std::make_unique<sim::Storage>(); };
  sim::SimOptions twin;
  twin.device.workspace = cuda::kWorkspace;
  return run(*sim::make_world({ranks, 1}, twin), model, strategy, options);
}

}  // namespace zl::test
