// The merges of a tokenizer in a GGUF file.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/checkpoint/gguf.h"
#include "simulator/json/reading.h"

namespace zl {

// tokenizer.ggml.token_type, by its numbers.
enum class GgufTokenKind : std::uint8_t { normal = 1, unknown, control, user, unused, byte };

// Of each token; all are normal where the file does not say. Throws Error{invalid} naming the key.
std::vector<GgufTokenKind> gguf_token_kinds(const GgufFile& file, const GgufList& tokens);

// tokenizer.ggml.merges as pairs. Throws Error{invalid} naming the key.
Json gguf_merges(const GgufFile& file);

// Of a SentencePiece model, which has scores instead: every way to make a normal token of two
// others, the highest score of the result first; among equals the earlier token, then the ids of
// the two. Throws Error{invalid} naming the key.
Json merges_by_score(const GgufFile& file, const GgufList& tokens);

}  // namespace zl
