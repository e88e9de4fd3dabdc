// Which tensor of a GGUF file is which of a Hugging Face model, and what is done to it on the way.
// Ownership: a GgufCopy views the file's tensor. Threads: pure functions.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/checkpoint/gguf.h"
#include "simulator/json/reading.h"

namespace zl {

struct GgufCopy {
  const GgufTensor* tensor = nullptr;
  std::string name;                 // in the Hugging Face model
  std::vector<std::int64_t> shape;  // row-major
  // Rows of q and k stand in pairs in files of llama: (0, D/2), (1, D/2 + 1), ... of each head.
  // D, where they are put back; 0: rows stay.
  std::int64_t head = 0;
  float minus = 0;  // Gemma's norms are stored with 1 added
};

// All of the model, in the order of its layers. `config` is gguf_config()'s. Throws Error{invalid}
// naming the file and up to ten tensors that are missing, are not known, or have another shape.
std::vector<GgufCopy> gguf_copies(const GgufFile& file, const Json& config);

// Calls take(values) for all of a tensor, in order, a part at a time.
void read_copy(const GgufFile& file, const GgufCopy& copy,
               const std::function<void(std::span<const float>)>& take);

}  // namespace zl
