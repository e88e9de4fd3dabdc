#include "core/data/gpt2_split.h"

#include <cstdint>
#include <initializer_list>

#include "core/data/unicode_class.h"

namespace zl {
namespace {

struct Character {
  CharClass kind;
  std::size_t size;  // bytes
};

// Length and smallest legal value by lead byte; size 0 for a byte that cannot lead.
struct Lead {
  std::size_t size;
  char32_t bits;
  char32_t smallest;
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1, byte, 0};
  if (byte < 0xc0) return {0, 0, 0};
  if (byte < 0xe0) return {2, byte & 0x1fu, 0x80};
  if (byte < 0xf0) return {3, byte & 0x0fu, 0x800};
  if (byte < 0xf8) return {4, byte & 0x07u, 0x10000};
  return {0, 0, 0};
}

Character character_at(std::string_view text, std::size_t at) {
  constexpr Character kInvalid{CharClass::other, 1};
  const Lead lead = lead_of(static_cast<unsigned char>(text[at]));
  if (lead.size == 0 || at + lead.size > text.size()) return kInvalid;
  char32_t code_point = lead.bits;
  for (std::size_t i = 1; i < lead.size; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xc0u) != 0x80u) return kInvalid;
    code_point = (code_point << 6) | (byte & 0x3fu);
  }
  const bool surrogate = code_point >= 0xd800 && code_point < 0xe000;
  if (code_point < lead.smallest || code_point > 0x10ffff || surrogate) return kInvalid;
  return {classify(code_point), lead.size};
}

std::size_t contraction_size(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(0, ending.size()) == ending) return ending.size();
  }
  return 0;
}

std::size_t run_end(std::string_view text, std::size_t at, CharClass kind) {
  while (at < text.size()) {
    const Character character = character_at(text, at);
    if (character.kind != kind) break;
    at += character.size;
  }
  return at;
}

// Leaves the last space of a run to the word that follows it, unless it is the only one.
std::size_t space_end(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  std::size_t last = begin;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (character.kind != CharClass::space) break;
    last = end;
    end += character.size;
  }
  return end == text.size() || last == begin ? end : last;
}

}  // namespace

std::size_t gpt2_piece_end(std::string_view text, std::size_t begin) {
  if (const std::size_t size = contraction_size(text.substr(begin))) return begin + size;
  const Character first = character_at(text, begin);
  if (first.kind != CharClass::space) return run_end(text, begin, first.kind);
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const CharClass next = character_at(text, begin + 1).kind;
    if (next != CharClass::space) return run_end(text, begin + 1, next);
  }
  return space_end(text, begin);
}

}  // namespace zl
