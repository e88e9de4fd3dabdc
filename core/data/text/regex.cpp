#include "core/data/text/regex.h"

#ifdef ZL_HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#include <cstdint>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/text/utf8.h"

namespace zl {

#ifdef ZL_HAVE_PCRE2

namespace {

constexpr std::uint32_t kMostSteps = 5'000'000;  // of one match: a second at most
constexpr std::uint32_t kMostHeap = 64 * 1024;   // KiB

constexpr std::string_view kSpaces =
    R"(\x09-\x0d\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// `pattern` with \s and \S spelt out. \S stays inside of [ ], where it cannot be.
std::string with_explicit_spaces(const std::string& pattern, const std::string& where) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (c == '\\' && next == 's') {
      out += in_class ? std::string(kSpaces) : "[" + std::string(kSpaces) + "]";
      ++i;
    } else if (c == '\\' && next == 'S' && !in_class) {
      out += "[^" + std::string(kSpaces) + "]";
      ++i;
    } else if (c == '\\' && next != '\0') {
      if (next == 'h' || next == 'H') {
        throw Error(ErrorCode::invalid, where + ": \\h is not known here; spell the class out");
      }
      out += {c, next};
      ++i;
    } else {
      if (in_class && c == '&' && next == '&') {
        throw Error(ErrorCode::invalid, where + ": && in a class is not known here; spell it out");
      }
      if (c == '[') in_class = true;
      if (c == ']') in_class = false;
      out += c;
    }
  }
  return out;
}

std::string reason_of(int code) {
  unsigned char text[256];
  const int size = pcre2_get_error_message(code, text, sizeof text);
  return size < 0 ? "error " + std::to_string(code) : std::string(text, text + size);
}

}  // namespace

struct Regex::Compiled {
  std::string where;
  std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code{nullptr, &pcre2_code_free};
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> limits{
      nullptr, &pcre2_match_context_free};

  // In text[begin, end), which is UTF-8.
  void find(std::string_view text, std::size_t begin, std::size_t end,
            const std::function<void(std::size_t, std::size_t)>& take) const;
};

void Regex::Compiled::find(std::string_view text, std::size_t begin, std::size_t end,
                           const std::function<void(std::size_t, std::size_t)>& take) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> match(
      pcre2_match_data_create_from_pattern(code.get(), nullptr), &pcre2_match_data_free);
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data()) + begin;
  for (std::size_t at = 0; at < end - begin;) {
    const int found = pcre2_match(code.get(), subject, end - begin, at, PCRE2_NO_UTF_CHECK,
                                  match.get(), limits.get());
    if (found == PCRE2_ERROR_NOMATCH) return;
    if (found < 0) {
      throw Error(ErrorCode::invalid, where + ": the pattern fails on this text: " +
                                          reason_of(found) + "; simplify it");
    }
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match.get());
    if (ends[1] > ends[0] && ends[0] >= at) {
      take(begin + ends[0], begin + ends[1]);
      at = ends[1];
    } else {  // empty: on by a character
      const std::size_t from = ends[0] > at ? ends[0] : at;
      at = from + (from < end - begin ? utf8_at(text, begin + from).size : 1);
    }
  }
}

bool has_regex() { return true; }

Regex::Regex(const std::string& pattern, const std::string& where) {
  auto compiled = std::make_unique<Compiled>();
  compiled->where = where;
  const std::string spelt = with_explicit_spaces(pattern, where);
  int error = 0;
  PCRE2_SIZE offset = 0;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelt.data()), spelt.size(),
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error,
                                     &offset, nullptr));
  if (compiled->code == nullptr) {
    throw Error(ErrorCode::invalid, where + ": \"" + shortened(pattern) +
                                        "\" is no regular expression: " + reason_of(error));
  }
  compiled->limits.reset(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(compiled->limits.get(), kMostSteps);
  pcre2_set_heap_limit(compiled->limits.get(), kMostHeap);
  compiled_ = std::move(compiled);
}

void Regex::find(std::string_view text,
                 const std::function<void(std::size_t, std::size_t)>& take) const {
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const Utf8Character character = utf8_at(text, at);
    if (character.code == kNoCharacter) {
      compiled_->find(text, begin, at, take);
      begin = at + 1;
    }
    at += character.size;
  }
  compiled_->find(text, begin, text.size(), take);
}

#else

struct Regex::Compiled {};

bool has_regex() { return false; }

Regex::Regex(const std::string& pattern, const std::string& where) {
  throw Error(ErrorCode::unavailable,
              where + ": \"" + shortened(pattern) +
                  "\" is none of the patterns that zerolab knows by heart, and this build has no "
                  "PCRE2 for others; install libpcre2-dev and build again");
}

void Regex::find(std::string_view, const std::function<void(std::size_t, std::size_t)>&) const {}

#endif

Regex::~Regex() = default;

}  // namespace zl
