// What a tokenizer file looks for in a text: a string, a well-known pattern, or a regular
// expression.
// Ownership: owns what it compiled. Threads: immutable; share it freely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/data/text/json_view.h"
#include "core/data/text/known_split.h"
#include "core/data/text/regex.h"

namespace zl {

class TextPattern {
 public:
  // {"String": ...} or {"Regex": ...}. Throws Error{invalid} naming the file and the path.
  explicit TextPattern(const JsonView& spec);
  explicit TextPattern(std::string literal) : literal_(std::move(literal)) {}

  // The matches, in order; none is empty.
  void find(std::string_view text,
            const std::function<void(std::size_t begin, std::size_t end)>& take) const;

  std::string replaced(std::string_view text, std::string_view by) const;

 private:
  std::string literal_;
  PieceEnd known_ = nullptr;
  std::shared_ptr<const Regex> regex_;
};

// What becomes of the matches when a text is split.
enum class SplitBehavior : std::uint8_t {
  isolated,         // each is a piece, and what lies between
  removed,          // they go
  merged_previous,  // each ends the piece before it
  merged_next,      // each begins the piece after it
  contiguous        // neighbouring matches are one piece
};

// Throws Error{invalid} naming the file and the path.
SplitBehavior parse_split_behavior(const JsonView& name);

// Calls take(begin, end) for the pieces of text, in order; none is empty. `invert`: what lies
// between matches counts as the matches.
void split_text(std::string_view text, const TextPattern& pattern, SplitBehavior behavior,
                bool invert, const std::function<void(std::size_t begin, std::size_t end)>& take);

}  // namespace zl
