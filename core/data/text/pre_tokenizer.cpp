#include "core/data/text/pre_tokenizer.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/data/gpt2_split.h"
#include "core/data/text/byte_spelling.h"
#include "core/data/text/class_runs.h"
#include "core/data/text/metaspace.h"
#include "core/data/text/normalizer.h"
#include "core/data/text/text_pattern.h"
#include "core/data/text/unicode_text.h"
#include "core/data/text/utf8.h"

namespace zl {
namespace {

TextPiece part_of(const TextPiece& piece, std::size_t begin, std::size_t end) {
  return {piece.text.substr(begin, end - begin), piece.first && begin == 0};
}

class ByteLevelSplit final : public PreTokenizer {
 public:
  explicit ByteLevelSplit(const JsonView& spec)
      : add_space_(spec.get("add_prefix_space").flag_or(true)),
        cuts_(spec.get("use_regex").flag_or(true)) {}

  void split(const TextPiece& piece, const TakePiece& take) const override {
    if (add_space_ && piece.text.front() != ' ') {
      const std::string with_space = " " + std::string(piece.text);
      cut({with_space, piece.first}, take);
    } else {
      cut(piece, take);
    }
  }

 private:
  void cut(const TextPiece& piece, const TakePiece& take) const {
    for (std::size_t begin = 0; begin < piece.text.size();) {
      const std::size_t end = cuts_ ? gpt2_piece_end(piece.text, begin) : piece.text.size();
      const std::string spelled = spell_bytes(piece.text.substr(begin, end - begin));
      take({spelled, piece.first && begin == 0});
      begin = end;
    }
  }

  bool add_space_, cuts_;
};

class PatternSplit final : public PreTokenizer {
 public:
  explicit PatternSplit(const JsonView& spec)
      : pattern_(spec.get("pattern")),
        behavior_(parse_split_behavior(spec.get("behavior"))),
        invert_(spec.get("invert").flag_or(false)) {}

  void split(const TextPiece& piece, const TakePiece& take) const override {
    split_text(piece.text, pattern_, behavior_, invert_,
               [&](std::size_t begin, std::size_t end) { take(part_of(piece, begin, end)); });
  }

 private:
  TextPattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
};

class DigitSplit final : public PreTokenizer {
 public:
  explicit DigitSplit(const JsonView& spec)
      : single_(spec.get("individual_digits").flag_or(false)) {}

  void split(const TextPiece& piece, const TakePiece& take) const override {
    for (std::size_t begin = 0; begin < piece.text.size();) {
      const std::size_t end = piece_end(piece.text, begin);
      take(part_of(piece, begin, end));
      begin = end;
    }
  }

 private:
  std::size_t piece_end(std::string_view text, std::size_t begin) const {
    const ClassedCharacter first = class_at(text, begin);
    if (first.kind == CharClass::number) {
      return single_ ? begin + first.size : class_run_end(text, begin, CharClass::number);
    }
    std::size_t at = begin + first.size;
    while (at < text.size()) {
      const ClassedCharacter next = class_at(text, at);
      if (next.kind == CharClass::number) break;
      at += next.size;
    }
    return at;
  }

  bool single_;
};

bool is_ascii_punctuation(char32_t c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

// Words between spaces; each punctuation character by itself.
class BertSplit final : public PreTokenizer {
 public:
  void split(const TextPiece& piece, const TakePiece& take) const override {
    std::size_t begin = 0, at = 0;
    const auto flush = [&] {
      if (begin < at) take(part_of(piece, begin, at));
    };
    for_each_utf8(piece.text, [&](char32_t code, std::string_view bytes) {
      const bool space = classify(code) == CharClass::space;
      const std::size_t end = at + bytes.size();
      if (space || is_ascii_punctuation(code) || is_unicode_punctuation(code)) {
        flush();
        if (!space) take(part_of(piece, at, end));
        begin = end;
      }
      at = end;
    });
    flush();
  }
};

// \w+|[^\w\s]+
class WhitespaceSplit final : public PreTokenizer {
 public:
  void split(const TextPiece& piece, const TakePiece& take) const override {
    enum class Kind : std::uint8_t { space, word, other };
    Kind last = Kind::space;
    std::size_t begin = 0, at = 0;
    const auto flush = [&] {
      if (last != Kind::space) take(part_of(piece, begin, at));
    };
    for_each_utf8(piece.text, [&](char32_t code, std::string_view bytes) {
      const Kind kind = is_word_character(code)              ? Kind::word
                        : classify(code) == CharClass::space ? Kind::space
                                                             : Kind::other;
      if (kind != last) {
        flush();
        begin = at;
        last = kind;
      }
      at += bytes.size();
    });
    flush();
  }
};

class MetaspaceSplit final : public PreTokenizer {
 public:
  explicit MetaspaceSplit(const JsonView& spec) : style_(parse_metaspace(spec)) {}

  void split(const TextPiece& piece, const TakePiece& take) const override {
    const std::string& mark = style_.mark;
    std::string text = TextPattern(" ").replaced(piece.text, mark);
    const bool prepends = style_.prepend == Metaspace::Prepend::always ||
                          (style_.prepend == Metaspace::Prepend::first && piece.first);
    if (prepends && !text.starts_with(mark)) text = mark + text;
    if (!style_.split) return take({text, piece.first});
    split_text(text, TextPattern(mark), SplitBehavior::merged_next, false,
               [&](std::size_t begin, std::size_t end) {
                 take(part_of({text, piece.first}, begin, end));
               });
  }

 private:
  Metaspace style_;
};

class SplitSequence final : public PreTokenizer {
 public:
  explicit SplitSequence(const JsonView& list) {
    for (const JsonView& item : list.items()) steps_.push_back(make_pre_tokenizer(item));
  }

  void split(const TextPiece& piece, const TakePiece& take) const override { run(0, piece, take); }

 private:
  void run(std::size_t step, const TextPiece& piece, const TakePiece& take) const {
    if (step == steps_.size()) return take(piece);
    steps_[step]->split(piece, [&](const TextPiece& part) { run(step + 1, part, take); });
  }

  std::vector<std::unique_ptr<const PreTokenizer>> steps_;
};

class NoSplit final : public PreTokenizer {
 public:
  void split(const TextPiece& piece, const TakePiece& take) const override { take(piece); }
};

}  // namespace

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const JsonView& spec) {
  if (spec.is_null()) return std::make_unique<NoSplit>();
  const JsonView type = spec.get("type");
  const std::string name = type.text();
  if (name == "ByteLevel") return std::make_unique<ByteLevelSplit>(spec);
  if (name == "Split") return std::make_unique<PatternSplit>(spec);
  if (name == "Digits") return std::make_unique<DigitSplit>(spec);
  if (name == "Metaspace") return std::make_unique<MetaspaceSplit>(spec);
  if (name == "Sequence") return std::make_unique<SplitSequence>(spec.get("pretokenizers"));
  if (name != "BertPreTokenizer" && name != "Whitespace") {
    type.refuse_choice({"ByteLevel", "Split", "Digits", "BertPreTokenizer", "Metaspace",
                        "Whitespace", "Sequence"});
  }
  require_unicode_text(type);
  if (name == "Whitespace") return std::make_unique<WhitespaceSplit>();
  return std::make_unique<BertSplit>();
}

}  // namespace zl
