// Cleans, puts spaces around Chinese characters, strips accents and lowers case.
#include "core/data/text/normalizer.h"
#include "core/data/text/unicode_text.h"
#include "core/data/text/utf8.h"
#include "core/data/unicode_class.h"

namespace zl {
namespace {

bool is_chinese(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

bool is_kept_control(char32_t c) { return c == '\t' || c == '\n' || c == '\r'; }

bool is_dropped(char32_t c) {
  if (c == 0 || c == 0xfffd || c == kNoCharacter) return true;
  return !is_kept_control(c) && is_control_or_format(c);
}

std::string cleaned(std::string_view text) {
  std::string out;
  for_each_utf8(text, [&out](char32_t code, std::string_view bytes) {
    if (is_dropped(code)) return;
    if (is_kept_control(code) || classify(code) == CharClass::space) {
      out += ' ';
    } else {
      out += bytes;
    }
  });
  return out;
}

std::string with_spaces_around_chinese(std::string_view text) {
  std::string out;
  for_each_utf8(text, [&out](char32_t code, std::string_view bytes) {
    const bool chinese = is_chinese(code);
    if (chinese) out += ' ';
    out += bytes;
    if (chinese) out += ' ';
  });
  return out;
}

std::string without_marks(std::string_view text) {
  std::string out;
  for_each_utf8(text, [&out](char32_t code, std::string_view bytes) {
    if (!is_nonspacing_mark(code)) out += bytes;
  });
  return out;
}

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const JsonView& spec)
      : clean_(spec.get("clean_text").flag_or(true)),
        chinese_(spec.get("handle_chinese_chars").flag_or(true)),
        lower_(spec.get("lowercase").flag_or(true)),
        strip_(spec.get("strip_accents").flag_or(lower_)) {}

  std::string apply(std::string text) const override {
    if (clean_) text = cleaned(text);
    if (chinese_) text = with_spaces_around_chinese(text);
    if (strip_) text = without_marks(to_form(text, UnicodeForm::nfd));
    if (lower_) text = to_lower_case(text);
    return text;
  }

 private:
  bool clean_, chinese_, lower_, strip_;
};

}  // namespace

std::unique_ptr<const Normalizer> make_bert_normalizer(const JsonView& spec) {
  require_unicode_text(spec);
  return std::make_unique<BertNormalizer>(spec);
}

}  // namespace zl
