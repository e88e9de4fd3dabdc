#include "core/data/text/utf8.h"

#include <algorithm>

#include "core/base/text.h"

namespace zl {

Utf8Character utf8_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t size = utf8_length(text.substr(at, 4));
  if (size == 0) return {};
  char32_t code = byte(0) & (0x7fu >> size);
  for (std::size_t i = 1; i < size; ++i) code = code << 6 | (byte(i) & 0x3fu);
  return {code, size};
}

std::size_t utf8_last_size(std::string_view text) {
  const std::size_t most = std::min<std::size_t>(text.size(), 4);
  for (std::size_t size = 1; size <= most; ++size) {
    const std::size_t at = text.size() - size;
    if ((static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u) continue;
    return utf8_length(text.substr(at)) == size ? size : 1;
  }
  return 1;
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
    return;
  }
  if (code < 0x800) {
    put(0xc0u | code >> 6);
  } else if (code < 0x10000) {
    put(0xe0u | code >> 12);
    put(0x80u | (code >> 6 & 0x3fu));
  } else {
    put(0xf0u | code >> 18);
    put(0x80u | (code >> 12 & 0x3fu));
    put(0x80u | (code >> 6 & 0x3fu));
  }
  put(0x80u | (code & 0x3fu));
}

}  // namespace zl
