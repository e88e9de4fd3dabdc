#include "core/data/text/unicode_text.h"

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/data/text/utf8.h"

#ifdef ZL_HAVE_UTF8PROC
#include <utf8proc.h>
#endif

namespace zl {

std::string no_unicode_text() {
  return "this build of zerolab has no Unicode tables; install libutf8proc-dev and build again";
}

#ifdef ZL_HAVE_UTF8PROC

namespace {

using Codes = std::vector<utf8proc_int32_t>;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

int mark_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

void append_decomposed(Codes& codes, char32_t code, utf8proc_option_t options) {
  utf8proc_int32_t parts[32];  // the longest of Unicode has 18
  int last_boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts, 32,
                                             options, &last_boundary);
  if (count < 0 || count > 32) {
    codes.push_back(static_cast<utf8proc_int32_t>(code));
  } else {
    codes.insert(codes.end(), parts, parts + count);
  }
}

// Marks stand by class (Unicode, section 3.11). utf8proc's own sort is quadratic in their number.
void order_marks(Codes& codes) {
  for (auto begin = codes.begin(); begin != codes.end();) {
    if (mark_class(*begin) == 0) {
      ++begin;
      continue;
    }
    const auto end = std::find_if(begin, codes.end(), [](auto c) { return mark_class(c) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return mark_class(a) < mark_class(b); });
    begin = end;
  }
}

// Appends what `codes` hold and empties them.
void flush(Codes& codes, UnicodeForm form, std::string& out) {
  order_marks(codes);
  auto size = static_cast<utf8proc_ssize_t>(codes.size());
  if (form != UnicodeForm::nfd && size > 0) {
    const int options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
    size = utf8proc_normalize_utf32(codes.data(), size, static_cast<utf8proc_option_t>(options));
  }
  for (utf8proc_ssize_t i = 0; i < size; ++i) {
    append_utf8(out, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  }
  codes.clear();
}

utf8proc_category_t category_of(char32_t code) {
  return code > 0x10ffff ? UTF8PROC_CATEGORY_CN
                         : utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Alphabetic without being a letter, a mark or a number: circled and squared Latin letters.
bool is_symbol_letter(char32_t c) {
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

}  // namespace

bool has_unicode_text() { return true; }

std::string to_form(std::string_view text, UnicodeForm form) {
  if (is_ascii(text)) return std::string(text);
  const int how = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                  (form == UnicodeForm::nfkc ? static_cast<int>(UTF8PROC_COMPAT) : 0);
  std::string out;
  Codes codes;
  for_each_utf8(text, [&](char32_t code, std::string_view bytes) {
    if (code != kNoCharacter) {
      append_decomposed(codes, code, static_cast<utf8proc_option_t>(how));
      return;
    }
    flush(codes, form, out);
    out += bytes;
  });
  flush(codes, form, out);
  return out;
}

std::string to_lower_case(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for_each_utf8(text, [&](char32_t code, std::string_view bytes) {
    if (code == kNoCharacter) {
      out += bytes;
    } else if (code == 0x130) {  // the one character whose small letter is two
      out += "i\u0307";
    } else {
      append_utf8(out,
                  static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
    }
  });
  return out;
}

bool is_nonspacing_mark(char32_t code) { return category_of(code) == UTF8PROC_CATEGORY_MN; }

bool is_unicode_punctuation(char32_t code) {
  const auto category = category_of(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_control_or_format(char32_t code) {
  const auto category = category_of(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool is_word_character(char32_t code) {
  const auto category = category_of(code);
  const bool letter = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
  const bool mark = category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
  return letter || mark || category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_PC || code == 0x200c || code == 0x200d ||
         is_symbol_letter(code);
}

#else

namespace {

[[noreturn]] void refuse_unicode() { throw Error(ErrorCode::unavailable, no_unicode_text()); }

}  // namespace

bool has_unicode_text() { return false; }
std::string to_form(std::string_view, UnicodeForm) { refuse_unicode(); }
std::string to_lower_case(std::string_view) { refuse_unicode(); }
bool is_nonspacing_mark(char32_t) { refuse_unicode(); }
bool is_unicode_punctuation(char32_t) { refuse_unicode(); }
bool is_control_or_format(char32_t) { refuse_unicode(); }
bool is_word_character(char32_t) { refuse_unicode(); }

#endif

}  // namespace zl
