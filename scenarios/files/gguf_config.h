// The config.json of a model in a GGUF file.
// Ownership: values. Threads: pure functions.
#pragma once

#include "core/checkpoint/gguf.h"
#include "simulator/json/reading.h"

namespace zl {

// Of llama, mistral (a llama with a window), qwen2, qwen3, gemma and phi3, with every key of the
// family. Numbers that the file holds in fp32 are the shortest decimals that mean the same. Throws
// Error{invalid} naming file and key: another architecture, a key that is missing, a rotary scaling
// that the file does not describe.
Json gguf_config(const GgufFile& file);

// "rope_parameters" of config.json for `head` elements a head. Frequencies that a llama file scales
// one by one (rope_freqs) must be those of a Llama 3.1 scaling, which is found by trying.
Json gguf_rope(const GgufFile& file, const std::string& architecture, std::int64_t head);

// The decimal of fewest digits that is this number in fp32.
double shortest_decimal(double value);

// Of "ARCHITECTURE.key". Throws Error{invalid} where it is missing or out of range.
std::int64_t gguf_count(const GgufFile& file, const std::string& key);

}  // namespace zl
