// GPT-2's spelling of bytes as printable characters, in which byte-level vocabularies are written.
// Ownership: values. Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace zl {

// Printable Latin-1 bytes stand for themselves, the others, in order, for U+0100, U+0101, ...
// (Radford et al. 2019, encoder.py).
std::string spell_bytes(std::string_view bytes);

// The bytes that a text spells; nothing when one of its characters spells none.
std::optional<std::string> unspell_bytes(std::string_view spelled);

}  // namespace zl
