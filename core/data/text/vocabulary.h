// Tokens by id, and ids by token.
// Ownership: owns the texts. Threads: immutable once built; share it freely.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/text/json_view.h"

namespace zl {

// Most ids without a token that a file may have: memory goes with the largest id.
inline constexpr std::int64_t kMostIdGaps = 1 << 20;

class Vocabulary {
 public:
  Vocabulary() = default;
  // An object of token to id. Throws Error{invalid} naming the file and the path: an id given
  // twice, negative, or far beyond the number of tokens.
  explicit Vocabulary(const JsonView& spec);

  std::int64_t size() const { return static_cast<std::int64_t>(texts_.size()); }  // largest id + 1
  std::optional<std::int32_t> id_of(std::string_view text) const;
  // nullptr: no token has the id.
  const std::string* text_of(std::int32_t id) const;
  std::size_t longest() const { return longest_; }  // bytes

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> texts_;  // the keys of ids_; nullptr: a gap
  std::size_t longest_ = 0;
};

}  // namespace zl
