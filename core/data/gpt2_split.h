// GPT-2's pre-tokenisation: where a text is cut before byte pairs are merged.
// Ownership: views of the caller's text. Threads: pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace zl {

// The end of the piece that starts at `begin` (begin < text.size()), as the pattern of GPT-2
// (Radford et al. 2019, encoder.py) cuts it:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Text is UTF-8; a byte that is not part of valid UTF-8 counts as one `other` character.
std::size_t gpt2_piece_end(std::string_view text, std::size_t begin);

}  // namespace zl
