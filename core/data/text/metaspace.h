// How SentencePiece-like tokenizers write spaces: as a mark, U+2581 in nearly all of them.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "core/data/text/json_view.h"

namespace zl {

struct Metaspace {
  enum class Prepend : std::uint8_t { always, first, never };

  std::string mark = "\u2581";
  Prepend prepend = Prepend::always;
  bool split = true;
};

// Of a pre-tokenizer or a decoder. Throws Error{invalid} naming the file and the path.
Metaspace parse_metaspace(const JsonView& spec);

}  // namespace zl
