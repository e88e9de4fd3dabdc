// How the texts of tokens become a text: the "decoder" of tokenizer.json.
// Ownership: owns its parts. Threads: immutable; share it freely.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/data/text/json_view.h"

namespace zl {

struct DecodedToken {
  std::string text;
  bool added = false;  // it stands for itself, not for bytes that it spells
};

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  virtual void apply(std::vector<DecodedToken>& tokens) const = 0;
};

// ByteLevel, WordPiece, ByteFallback, Fuse, Strip, Replace, Metaspace, Sequence; null: tokens with
// spaces between them. Bytes that are no UTF-8 stay as they are, where Hugging Face's tokenizers
// writes U+FFFD: what was encoded comes back. Throws Error{invalid} naming the file and the path.
std::unique_ptr<const TokenDecoder> make_token_decoder(const JsonView& spec);

}  // namespace zl
