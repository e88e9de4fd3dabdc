#include "results/xml.h"

#include <cstddef>
#include <cstdint>

namespace zl {
namespace {

// Bytes of the UTF-8 sequence at the front; 0: none that XML allows.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  std::uint32_t code = length == 1 ? first : first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  const bool forbidden = code == 0xfffe || code == 0xffff || code > 0x10ffff;
  return overlong || surrogate || forbidden ? 0 : length;
}

void append_character(std::string& out, std::string_view sequence) {
  const char c = sequence[0];
  if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
    out += ' ';
  } else if (c == '&') {
    out += "&amp;";
  } else if (c == '<') {
    out += "&lt;";
  } else if (c == '>') {
    out += "&gt;";
  } else if (c == '"') {
    out += "&quot;";
  } else if (c == '\'') {
    out += "&#39;";
  } else {
    out += sequence;
  }
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      append_character(out, text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace zl
