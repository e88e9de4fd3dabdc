// Texts that are one token each wherever they stand, before anything else is done to a text: the
// "added_tokens" of tokenizer.json.
// Ownership: owns its tables. Threads: immutable; share it freely.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/text/json_view.h"
#include "core/data/tokenizer.h"

namespace zl {

struct AddedToken {
  std::int32_t id = 0;
  std::string text;
  bool special = false;      // dropped when text is made of tokens for people
  bool normalized = true;    // looked for in the normalised text
  bool left_strip = false;   // takes the spaces before it
  bool right_strip = false;  // and after it
  bool single_word = false;  // not inside of a word
};

// Throws Error{invalid} naming the file and the path. An id may lie beyond the model's `vocab`.
std::vector<AddedToken> read_added_tokens(const JsonView& list, std::int64_t vocab);

bool touches_any(const std::vector<TextRange>& ranges, std::size_t begin, std::size_t end);

// Finds some of them in a text.
class AddedTokenFinder {
 public:
  // A part of the text: a token, or (id -1) what lies between.
  struct Part {
    std::size_t begin = 0, end = 0;
    std::int32_t id = -1;
  };

  // The text of a token is looked for as it is given; an empty one never.
  void add(const AddedToken& token);

  // Calls take(part) for all of the text in order; no part is empty. Of tokens that begin at one
  // place the longest counts. `protect`: nothing that touches one of these is a token.
  void split(std::string_view text, AddedTokens which, const std::vector<TextRange>& protect,
             const std::function<void(const Part&)>& take) const;

 private:
  struct Node {
    std::map<unsigned char, std::size_t> next;
    std::int64_t token = -1;  // index
  };

  // The token at `at`; nullptr: none begins there.
  const AddedToken* longest_at(std::string_view text, std::size_t at) const;

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_{1};
  std::array<bool, 256> begins_{};  // bytes that a token begins with
};

}  // namespace zl
