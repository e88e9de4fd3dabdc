// Text inside XML and HTML.
// Ownership: values. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace zl {

// For element content and quoted attributes: markup is escaped, control characters become spaces,
// bytes that are no UTF-8 become U+FFFD. Well-formed whatever comes in.
std::string xml_escaped(std::string_view text);

}  // namespace zl
