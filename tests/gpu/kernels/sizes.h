// The shapes that the op table measures, and toy ones.
// Ownership: values. Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "core/ops/activation.h"
#include "core/ops/attention.h"
#include "core/ops/norm.h"

namespace zl::gpu {

// One layer's worth of a model.
struct Layer {
  std::string name;
  AttentionShape attention;
  std::int64_t ffn, vocab;
  NormKind norm;
  ActivationKind activation;

  std::int64_t rows() const { return attention.rows(); }
  std::int64_t hidden() const { return attention.out_width(); }
};

struct Sizes {
  Layer gpt2, llama;
  std::int64_t logit_rows;  // at a time
  std::int64_t parameters;
  std::string parameters_text;
  std::int64_t reduced;                // elements
  std::int64_t copied;                 // bytes
  std::int64_t gemm;                   // rows and columns
  std::int64_t chunk_rows, odd_vocab;  // of logits
};

// Batches that fill a large GPU.
inline const Sizes kFull{
    {"gpt2-124m",
     {64, 1024, 12, 12, 64},
     3072,
     50304,
     NormKind::layer_norm,
     ActivationKind::gelu_tanh},
    {"llama-1b", {8, 4096, 32, 4, 64}, 5632, 32000, NormKind::rms_norm, ActivationKind::swiglu},
    8192,
    124'000'000,
    "124 M parameters",
    32 << 20,
    1 << 30,
    8192,
    2624,
    50257};
// Where nothing is measured.
inline const Sizes kTiny{
    {"tiny gpt2", {1, 64, 1, 1, 64}, 96, 96, NormKind::layer_norm, ActivationKind::gelu_tanh},
    {"tiny llama", {1, 64, 2, 1, 64}, 96, 96, NormKind::rms_norm, ActivationKind::swiglu},
    32,
    16384,
    "16384 parameters",
    4096,
    1 << 16,
    64,
    32,
    97};

}  // namespace zl::gpu
