#include "core/data/gpt2_split.h"

#include <initializer_list>

#include "core/data/text/class_runs.h"

namespace zl {
namespace {

std::size_t contraction_size(std::string_view text) {
  for (const std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.substr(0, ending.size()) == ending) return ending.size();
  }
  return 0;
}

}  // namespace

std::size_t gpt2_piece_end(std::string_view text, std::size_t begin) {
  if (const std::size_t size = contraction_size(text.substr(begin))) return begin + size;
  const ClassedCharacter first = class_at(text, begin);
  if (first.kind != CharClass::space) return class_run_end(text, begin, first.kind);
  if (text[begin] == ' ' && begin + 1 < text.size()) {
    const CharClass next = class_at(text, begin + 1).kind;
    if (next != CharClass::space) return class_run_end(text, begin + 1, next);
  }
  return space_run_end(text, begin);
}

}  // namespace zl
