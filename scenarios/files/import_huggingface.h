// Reads a Hugging Face config.json of a GPT-2, Llama, Mistral or Qwen2 model into a ModelConfig.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string_view>

#include "core/model/model_config.h"

namespace zl {

// Throws Error{invalid} naming the architecture, or the key whose value zerolab cannot represent
// (scaled rotary positions, mixtures of experts, an active sliding window of Qwen2, other
// activations). Sizes are never guessed: a missing one is an error. Keys that only concern
// generation or file formats are ignored.
ModelConfig import_huggingface(std::string_view json_text, std::string_view source_name);

}  // namespace zl
