// A tokenizer as tokenizer.json describes it, stage by stage: added tokens, normalizer,
// pre-tokenizer, model, post-processor; and its decoder.
// Ownership: owns its stages. Threads: immutable; share it freely.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/text/added_tokens.h"
#include "core/data/text/json_view.h"
#include "core/data/text/normalizer.h"
#include "core/data/text/post_processor.h"
#include "core/data/text/pre_tokenizer.h"
#include "core/data/text/token_decoder.h"
#include "core/data/text/token_model.h"
#include "core/data/tokenizer.h"

namespace zl {

class StagedTokenizer final : public Tokenizer {
 public:
  // `spec` is a tokenizer.json (truncation and padding are ignored), `names` a
  // tokenizer_config.json or null. Throws Error{invalid} naming the file and the path in it for
  // what is malformed or not known here, Error{unavailable} for what this build lacks a library
  // for.
  StagedTokenizer(const JsonView& spec, const std::optional<JsonView>& names);

  std::int64_t vocab() const override { return vocab_; }
  std::vector<std::int32_t> encode(std::string_view text) const override;
  std::string decode(std::span<const std::int32_t> tokens) const override;
  TokenizedInput encode_input(const TextInput& input) const override;
  bool is_special(std::int32_t id) const override;
  std::optional<std::int32_t> id_of(std::string_view token) const override;
  SpecialIds special_ids() const override { return special_; }

 private:
  class Encoder;

  void read_added(const JsonView& list);
  void read_names(const std::optional<JsonView>& names);
  std::optional<std::int32_t> named(const std::optional<JsonView>& names, const char* key,
                                    const std::string& usual) const;
  TokenizedInput encode_one(std::string_view text, AddedTokens added,
                            const std::vector<TextRange>& content, std::int32_t type) const;

  std::unique_ptr<const Normalizer> normalizer_;
  std::unique_ptr<const PreTokenizer> pre_tokenizer_;
  std::unique_ptr<const TokenModel> model_;
  std::unique_ptr<const PostProcessor> post_processor_;
  std::unique_ptr<const TokenDecoder> decoder_;
  AddedTokenFinder raw_added_, normalized_added_;
  std::unordered_map<std::int32_t, AddedToken> added_;
  std::unordered_map<std::string, std::int32_t> added_ids_;
  std::int64_t vocab_ = 0;
  SpecialIds special_;
};

}  // namespace zl
