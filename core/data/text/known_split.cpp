#include "core/data/text/known_split.h"

#include <initializer_list>
#include <utility>

#include "core/data/gpt2_split.h"
#include "core/data/text/class_runs.h"
#include "core/data/text/utf8.h"

namespace zl {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kCl100k =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+)"
    R"(|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";

bool is_line_end(char c) { return c == '\r' || c == '\n'; }

char small(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Of a contraction in any case behind the apostrophe at the front; 0: there is none. U+017F, the
// long s, is an s without case.
std::size_t any_case_contraction(std::string_view text) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (text.substr(1, 2) == "\u017f") return 3;
  const char first = small(text[1]);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (text.size() < 3) return 0;
  const char second = small(text[2]);
  const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

std::size_t numbers_end(std::string_view text, std::size_t at, int most) {
  for (int count = 0; count < most && at < text.size(); ++count) {
    const ClassedCharacter character = class_at(text, at);
    if (character.kind != CharClass::number) break;
    at += character.size;
  }
  return at;
}

// [^\s\p{L}\p{N}]+[\r\n]*
std::size_t others_end(std::string_view text, std::size_t at) {
  at = class_run_end(text, at, CharClass::other);
  while (at < text.size() && is_line_end(text[at])) ++at;
  return at;
}

struct SplitStyle {
  int numbers;         // how many stay together
  bool joins_the_end;  // spaces at the end of the text are one piece, line ends or not
};

std::size_t spaces_end(std::string_view text, std::size_t begin, const SplitStyle& style) {
  const std::size_t end = class_run_end(text, begin, CharClass::space);
  if (style.joins_the_end && end == text.size()) return end;
  for (std::size_t at = end; at > begin; --at) {
    if (is_line_end(text[at - 1])) return at;
  }
  return space_run_end(text, begin);
}

std::size_t piece_end(std::string_view text, std::size_t begin, const SplitStyle& style) {
  if (const std::size_t size = any_case_contraction(text.substr(begin))) return begin + size;
  const ClassedCharacter first = class_at(text, begin);
  if (first.kind == CharClass::letter) return class_run_end(text, begin, CharClass::letter);
  if (first.kind == CharClass::number) return numbers_end(text, begin, style.numbers);
  const std::size_t behind = begin + first.size;
  const bool is_last = behind == text.size();
  const CharClass next = is_last ? CharClass::space : class_at(text, behind).kind;
  if (!is_line_end(text[begin]) && next == CharClass::letter) {
    return class_run_end(text, behind, CharClass::letter);
  }
  if (first.kind == CharClass::other) return others_end(text, begin);
  if (text[begin] == ' ' && next == CharClass::other) return others_end(text, behind);
  return spaces_end(text, begin, style);
}

}  // namespace

std::size_t llama3_piece_end(std::string_view text, std::size_t begin) {
  return piece_end(text, begin, {3, false});
}

std::size_t qwen2_piece_end(std::string_view text, std::size_t begin) {
  return piece_end(text, begin, {1, false});
}

std::size_t cl100k_piece_end(std::string_view text, std::size_t begin) {
  return piece_end(text, begin, {3, true});
}

PieceEnd known_split(std::string_view pattern) {
  for (const auto& [known, end] : {std::pair{kGpt2, &gpt2_piece_end},
                                   {kLlama3, &llama3_piece_end},
                                   {kQwen2, &qwen2_piece_end},
                                   {kCl100k, &cl100k_piece_end}}) {
    if (pattern == known) return end;
  }
  return nullptr;
}

}  // namespace zl
