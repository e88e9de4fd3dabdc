// WordPiece (Devlin et al. 2019): the longest token that begins a word, then the longest that goes
// it on, ...; a word that cannot be made is one unknown token.
// Ownership: owns its tables. Threads: immutable; share it freely.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/text/token_model.h"

namespace zl {

class WordPieceModel final : public TokenModel {
 public:
  // Throws Error{invalid} naming the file and the path.
  explicit WordPieceModel(const JsonView& spec);

  void encode(std::string_view word, std::vector<std::int32_t>& ids) const override;

 private:
  std::string prefix_;        // "##"
  std::size_t longest_word_;  // characters
  std::int32_t unknown_id_ = 0;
};

}  // namespace zl
