// Text as its tokens come, for those who read along: whole characters only.
// Ownership: views the tokenizer, which must live as long. Threads: one per stream.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/data/tokenizer.h"

namespace zl {

class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // The text that `token` completes: valid UTF-8, in which bytes that are none stand as U+FFFD; a
  // character that has only begun is held back. Special tokens add nothing. Throws Error{invalid}
  // for an id out of range.
  std::string push(std::int32_t token);
  // What is held back at the end, as U+FFFD.
  std::string finish();

 private:
  std::string take_complete(bool all);

  const Tokenizer* tokenizer_;
  std::optional<std::int32_t> last_;  // spaces depend on the token before
  std::string held_;
};

}  // namespace zl
