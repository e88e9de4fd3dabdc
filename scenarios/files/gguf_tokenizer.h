// The tokenizer in a GGUF file, as Hugging Face's files spell it.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>

#include "core/checkpoint/gguf.h"
#include "simulator/json/reading.h"

namespace zl {

// tokenizer.json of tokenizer.ggml.*: byte-level BPE ("gpt2", with the pre-tokenisation of GPT-2,
// Llama 3, Qwen2 or SmolLM2) or SentencePiece ("llama"). Nothing where the file has no tokenizer.
// Throws Error{invalid} naming file and key for another kind, and for what is malformed.
std::optional<Json> gguf_tokenizer(const GgufFile& file);

// tokenizer_config.json: names of special tokens, and the chat template where the file has one.
Json gguf_tokenizer_config(const GgufFile& file);

}  // namespace zl
