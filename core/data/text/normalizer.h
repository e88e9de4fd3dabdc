// What a tokenizer changes of a text before it cuts it: the "normalizer" of tokenizer.json.
// Ownership: owns its parts. Threads: immutable; share it freely.
#pragma once

#include <memory>
#include <string>

#include "core/data/text/json_view.h"

namespace zl {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Bytes that are no UTF-8 stay, unless a step drops what it does not know.
  virtual std::string apply(std::string text) const = 0;
};

// NFC, NFD, NFKC, Lowercase, StripAccents, Prepend, Replace, BertNormalizer, Sequence; null:
// nothing changes. Throws Error{invalid} naming the file and the path for another, and
// Error{unavailable} for those that ask Unicode what this build does not know.
std::unique_ptr<const Normalizer> make_normalizer(const JsonView& spec);

// Throws Error{unavailable} naming file and path unless this build has Unicode's tables.
void require_unicode_text(const JsonView& who);

// BertNormalizer (Devlin et al. 2019, tokenization.py; CJK as Hugging Face's tokenizers has it).
std::unique_ptr<const Normalizer> make_bert_normalizer(const JsonView& spec);

}  // namespace zl
