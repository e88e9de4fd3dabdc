// How a piece of text becomes tokens: the "model" of tokenizer.json.
// Ownership: owns its vocabulary. Threads: immutable; share it freely.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/text/json_view.h"
#include "core/data/text/vocabulary.h"

namespace zl {

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Where the part of a piece that begins at `begin` ends; parts become tokens by themselves, with
  // the tokens of the whole piece as the result.
  virtual std::size_t part_end(std::string_view piece, std::size_t begin) const {
    return begin < piece.size() ? piece.size() : begin;
  }
  // Appends the tokens of a part.
  virtual void encode(std::string_view part, std::vector<std::int32_t>& ids) const = 0;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  const std::string& unknown() const { return unknown_; }  // the token; empty: there is none

 protected:
  explicit TokenModel(const JsonView& spec)
      : vocabulary_(spec.get("vocab")), unknown_(spec.get("unk_token").text_or("")) {}

 private:
  Vocabulary vocabulary_;
  std::string unknown_;
};

// BPE (by bytes, or by characters with or without bytes to fall back to) and WordPiece. Throws
// Error{invalid} naming the file and the path.
std::unique_ptr<const TokenModel> make_token_model(const JsonView& spec);

}  // namespace zl
