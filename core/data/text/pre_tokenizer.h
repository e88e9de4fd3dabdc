// Where a text is cut before its pieces become tokens: the "pre_tokenizer" of tokenizer.json.
// Ownership: owns its parts; pieces view the caller's text, for as long as the call. Threads:
// immutable; share it freely.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "core/data/text/json_view.h"

namespace zl {

struct TextPiece {
  std::string_view text;  // not empty
  bool first = false;     // whether it begins where the whole text does
};

using TakePiece = std::function<void(const TextPiece&)>;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Calls take() for what becomes of a piece, in order.
  virtual void split(const TextPiece& piece, const TakePiece& take) const = 0;
};

// ByteLevel, Split, Digits, BertPreTokenizer, Metaspace, Whitespace, Sequence; null: the text is
// one piece. Throws Error{invalid} naming the file and the path for another, and Error{unavailable}
// for what this build lacks a library for.
std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const JsonView& spec);

}  // namespace zl
