// A GGUF file as a Hugging Face folder.
// Ownership: values. Threads: the calling one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace zl {

struct GgufImport {
  std::string model_type;
  std::int64_t tensors = 0, parameters = 0;
  std::vector<std::string> files;  // what was written
  bool has_tokenizer = false;
};

// Writes model.safetensors (fp32, bf16 or fp16, tensor by tensor: memory for one part of a tensor),
// tokenizer.json and tokenizer_config.json where the file has a tokenizer, and config.json last.
// Each file appears whole or not at all. Throws Error{invalid} naming the file and what in it
// cannot be imported, and, unless `replace`, naming a file that is already there; nothing is
// written then. Throws Error{failed} when the disk refuses.
GgufImport import_gguf(const std::string& path, const std::string& folder, DType dtype,
                       bool replace);

}  // namespace zl
