// Reads a Hugging Face config.json of a GPT-2, Llama, Mistral, Qwen2, Qwen3, Gemma or
// Phi-3 model, or of an encoder of BERT's or RoBERTa's kind, into a ModelConfig.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string_view>

#include "core/model/model_config.h"

namespace zl {

// A key that is absent means what it means in transformers 5.23, one that is null that there is no
// such thing; only the sizes that every file gives are asked for. Throws Error{invalid} naming the
// architecture and the nearest known one, or the key whose value zerolab cannot represent (mixtures
// of experts, other activations, scales of attention). Keys that only concern generation or file
// formats are ignored.
ModelConfig import_huggingface(std::string_view json_text, std::string_view source_name);

}  // namespace zl
