#include "core/data/text/token_decoder.h"

#include <array>
#include <cstdint>
#include <utility>

#include "core/data/text/byte_spelling.h"
#include "core/data/text/metaspace.h"
#include "core/data/text/text_pattern.h"
#include "core/data/text/utf8.h"

namespace zl {
namespace {

using DecodedTokens = std::vector<DecodedToken>;

void join_tokens(DecodedTokens& tokens, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i > 0) text += between;
    text += tokens[i].text;
  }
  tokens.assign(1, {std::move(text), false});
}

class JoinDecoder final : public TokenDecoder {
 public:
  explicit JoinDecoder(std::string between) : between_(std::move(between)) {}
  void apply(DecodedTokens& tokens) const override { join_tokens(tokens, between_); }

 private:
  std::string between_;
};

class ByteLevelDecoder final : public TokenDecoder {
 public:
  void apply(DecodedTokens& tokens) const override {
    for (DecodedToken& token : tokens) {
      if (token.added) continue;
      if (auto bytes = unspell_bytes(token.text)) token.text = std::move(*bytes);
    }
    join_tokens(tokens, "");
  }
};

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

class ByteFallbackDecoder final : public TokenDecoder {
 public:
  void apply(DecodedTokens& tokens) const override {
    for (DecodedToken& token : tokens) {
      const std::string& text = token.text;
      if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') continue;
      const int high = digit_of(text[3]), low = digit_of(text[4]);
      if (high >= 0 && low >= 0) token.text = std::string(1, static_cast<char>(high * 16 + low));
    }
  }
};

class StripDecoder final : public TokenDecoder {
 public:
  explicit StripDecoder(const JsonView& spec)
      : content_(spec.get("content").text()),
        start_(spec.get("start").integer(0, INT32_MAX)),
        stop_(spec.get("stop").integer(0, INT32_MAX)) {
    if (content_.empty()) spec.get("content").refuse("empty; a character is needed");
  }

  void apply(DecodedTokens& tokens) const override {
    for (DecodedToken& token : tokens) {
      std::string_view text = token.text;
      for (std::int64_t i = 0; i < start_ && text.starts_with(content_); ++i) {
        text.remove_prefix(content_.size());
      }
      for (std::int64_t i = 0; i < stop_ && text.ends_with(content_); ++i) {
        text.remove_suffix(content_.size());
      }
      token.text = std::string(text);
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class ReplaceDecoder final : public TokenDecoder {
 public:
  explicit ReplaceDecoder(const JsonView& spec)
      : pattern_(spec.get("pattern")), by_(spec.get("content").text()) {}

  void apply(DecodedTokens& tokens) const override {
    for (DecodedToken& token : tokens) token.text = pattern_.replaced(token.text, by_);
  }

 private:
  TextPattern pattern_;
  std::string by_;
};

// Marks are spaces, but those of the first token, which the pre-tokenizer put there.
class MetaspaceDecoder final : public TokenDecoder {
 public:
  explicit MetaspaceDecoder(const JsonView& spec)
      : style_(parse_metaspace(spec)), mark_(style_.mark) {}

  void apply(DecodedTokens& tokens) const override {
    const bool drops = style_.prepend != Metaspace::Prepend::never;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i].text = mark_.replaced(tokens[i].text, i == 0 && drops ? "" : " ");
    }
  }

 private:
  Metaspace style_;
  TextPattern mark_;
};

// Words with spaces between them; `cleanup` takes those before English punctuation away.
class WordPieceDecoder final : public TokenDecoder {
 public:
  explicit WordPieceDecoder(const JsonView& spec)
      : prefix_(spec.get("prefix").text_or("##")), cleans_(spec.get("cleanup").flag_or(true)) {}

  void apply(DecodedTokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& text = tokens[i].text;
      if (i > 0 && text.starts_with(prefix_)) {
        text.erase(0, prefix_.size());
      } else if (i > 0) {
        text.insert(0, " ");
      }
      if (cleans_) clean(text);
    }
  }

 private:
  static void clean(std::string& text) {
    using Row = std::pair<const char*, const char*>;
    static const std::array<Row, 11> kCleaned{{{" .", "."},
                                               {" ?", "?"},
                                               {" !", "!"},
                                               {" ,", ","},
                                               {" ' ", "'"},
                                               {" n't", "n't"},
                                               {" 'm", "'m"},
                                               {" do not", " don't"},
                                               {" 's", "'s"},
                                               {" 've", "'ve"},
                                               {" 're", "'re"}}};
    for (const auto& [from, to] : kCleaned) text = TextPattern(from).replaced(text, to);
  }

  std::string prefix_;
  bool cleans_;
};

class DecoderSequence final : public TokenDecoder {
 public:
  explicit DecoderSequence(const JsonView& list) {
    for (const JsonView& item : list.items()) steps_.push_back(make_token_decoder(item));
  }
  void apply(DecodedTokens& tokens) const override {
    for (const auto& step : steps_) step->apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<const TokenDecoder>> steps_;
};

}  // namespace

std::unique_ptr<const TokenDecoder> make_token_decoder(const JsonView& spec) {
  if (spec.is_null()) return std::make_unique<JoinDecoder>(" ");
  const JsonView type = spec.get("type");
  const std::string name = type.text();
  if (name == "ByteLevel") return std::make_unique<ByteLevelDecoder>();
  if (name == "WordPiece") return std::make_unique<WordPieceDecoder>(spec);
  if (name == "ByteFallback") return std::make_unique<ByteFallbackDecoder>();
  if (name == "Fuse") return std::make_unique<JoinDecoder>("");
  if (name == "Strip") return std::make_unique<StripDecoder>(spec);
  if (name == "Replace") return std::make_unique<ReplaceDecoder>(spec);
  if (name == "Metaspace") return std::make_unique<MetaspaceDecoder>(spec);
  if (name == "Sequence") return std::make_unique<DecoderSequence>(spec.get("decoders"));
  type.refuse_choice({"ByteLevel", "WordPiece", "ByteFallback", "Fuse", "Strip", "Replace",
                      "Metaspace", "Sequence"});
}

}  // namespace zl
