#include "core/data/text_stream.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "core/data/text/utf8.h"

namespace zl {
namespace {

// Bytes that a character takes whose first byte is `lead`; 1 for what begins none.
std::size_t size_from_lead(unsigned char lead) {
  return lead >= 0xf0 && lead < 0xf5 ? 4
         : lead >= 0xe0              ? (lead < 0xf0 ? 3 : 1)
         : lead >= 0xc2              ? 2
                                     : 1;
}

bool may_go_on(std::string_view tail) {
  if (tail.size() >= size_from_lead(static_cast<unsigned char>(tail[0]))) return false;
  for (const char c : tail.substr(1)) {
    if ((static_cast<unsigned char>(c) & 0xc0u) != 0x80u) return false;
  }
  return true;
}

}  // namespace

std::string TextStream::push(std::int32_t token) {
  if (tokenizer_->is_special(token)) return "";
  if (last_) {
    const std::array<std::int32_t, 2> both{*last_, token};
    const std::string before = tokenizer_->decode({both.data(), 1});
    const std::string after = tokenizer_->decode(both);
    if (after.size() > before.size()) held_ += after.substr(before.size());
  } else {
    held_ += tokenizer_->decode({&token, 1});
  }
  last_ = token;
  return take_complete(false);
}

std::string TextStream::finish() { return take_complete(true); }

std::string TextStream::take_complete(bool all) {
  std::string out;
  std::size_t at = 0;
  while (at < held_.size()) {
    const Utf8Character character = utf8_at(held_, at);
    const std::string_view rest = std::string_view(held_).substr(at);
    if (character.code != kNoCharacter) {
      out += rest.substr(0, character.size);
    } else if (!all && may_go_on(rest)) {
      break;
    } else {
      out += "\ufffd";
    }
    at += character.size;
  }
  held_.erase(0, at);
  return out;
}

}  // namespace zl
