// What a model wants around its texts: the "post_processor" of tokenizer.json.
// Ownership: owns its parts. Threads: immutable; share it freely.
#pragma once

#include <memory>

#include "core/data/text/json_view.h"
#include "core/data/tokenizer.h"

namespace zl {

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // Puts one text, or two, into one row. `second`: nullptr for one text.
  virtual TokenizedInput join(TokenizedInput first, const TokenizedInput* second) const = 0;
};

// TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel (which changes no ids),
// Sequence; null: texts as they are, one behind the other. Throws Error{invalid} naming the file
// and the path for another, and for ids that are not below `vocab`.
std::unique_ptr<const PostProcessor> make_post_processor(const JsonView& spec, std::int64_t vocab);

}  // namespace zl
