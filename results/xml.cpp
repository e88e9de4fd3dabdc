#include "results/xml.h"

#include "core/base/text.h"

namespace zl {
namespace {

// Bytes of the UTF-8 sequence at the front; 0: none that XML allows.
std::size_t sequence_length(std::string_view text) {
  const std::size_t length = utf8_length(text);
  const bool forbidden = text.starts_with("\xef\xbf\xbe") || text.starts_with("\xef\xbf\xbf");
  return forbidden ? 0 : length;
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
