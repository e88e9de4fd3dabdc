// The pre-tokenisation patterns of well-known models, by hand: no regular expressions at run time.
// Ownership: views of the caller's text. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace zl {

// The end of the piece of `text` that starts at `begin` (begin < text.size()). Every byte belongs
// to a piece; one that is no UTF-8 counts as a character that is no letter, number or space.
using PieceEnd = std::size_t (*)(std::string_view text, std::size_t begin);

// Of the patterns of GPT-2 (gpt2_split.h), Llama 3, Qwen2 and tiktoken's cl100k_base, as their
// tokenizer.json spell them; nullptr for any other pattern.
PieceEnd known_split(std::string_view pattern);

// Llama 3 (llama-models, tokenizer.py; tiktoken's cl100k_base with another end):
//   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|
//   \s*[\r\n]+|\s+(?!\S)|\s+
std::size_t llama3_piece_end(std::string_view text, std::size_t begin);

// Llama 3's with one number at a time (Qwen2's tokenizer.json).
std::size_t qwen2_piece_end(std::string_view text, std::size_t begin);

// tiktoken's: as Llama 3's, but spaces at the end of the text stay together.
std::size_t cl100k_piece_end(std::string_view text, std::size_t begin);

}  // namespace zl
