#include "core/data/text/class_runs.h"

#include "core/data/text/utf8.h"

namespace zl {

ClassedCharacter class_at(std::string_view text, std::size_t at) {
  const Utf8Character character = utf8_at(text, at);
  return {classify(character.code), character.size};
}

std::size_t class_run_end(std::string_view text, std::size_t at, CharClass kind) {
  while (at < text.size()) {
    const ClassedCharacter character = class_at(text, at);
    if (character.kind != kind) break;
    at += character.size;
  }
  return at;
}

std::size_t space_run_end(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  std::size_t last = begin;
  while (end < text.size()) {
    const ClassedCharacter character = class_at(text, end);
    if (character.kind != CharClass::space) break;
    last = end;
    end += character.size;
  }
  return end == text.size() || last == begin ? end : last;
}

}  // namespace zl
