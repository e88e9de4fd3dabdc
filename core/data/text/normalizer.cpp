#include "core/data/text/normalizer.h"

#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/text/text_pattern.h"
#include "core/data/text/unicode_text.h"
#include "core/data/text/utf8.h"

namespace zl {
namespace {

class FormNormalizer final : public Normalizer {
 public:
  explicit FormNormalizer(UnicodeForm form) : form_(form) {}
  std::string apply(std::string text) const override { return to_form(text, form_); }

 private:
  UnicodeForm form_;
};

class LowercaseNormalizer final : public Normalizer {
 public:
  std::string apply(std::string text) const override { return to_lower_case(text); }
};

// Of marks that stand by themselves; composed letters keep theirs.
class StripAccentsNormalizer final : public Normalizer {
 public:
  std::string apply(std::string text) const override {
    std::string out;
    for_each_utf8(text, [&out](char32_t code, std::string_view bytes) {
      if (!is_nonspacing_mark(code)) out += bytes;
    });
    return out;
  }
};

class PrependNormalizer final : public Normalizer {
 public:
  explicit PrependNormalizer(std::string prefix) : prefix_(std::move(prefix)) {}
  std::string apply(std::string text) const override {
    return text.empty() ? text : prefix_ + text;
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(TextPattern pattern, std::string by)
      : pattern_(std::move(pattern)), by_(std::move(by)) {}
  std::string apply(std::string text) const override { return pattern_.replaced(text, by_); }

 private:
  TextPattern pattern_;
  std::string by_;
};

class NormalizerSequence final : public Normalizer {
 public:
  explicit NormalizerSequence(const JsonView& list) {
    for (const JsonView& item : list.items()) steps_.push_back(make_normalizer(item));
  }
  std::string apply(std::string text) const override {
    for (const auto& step : steps_) text = step->apply(std::move(text));
    return text;
  }

 private:
  std::vector<std::unique_ptr<const Normalizer>> steps_;
};

class NoNormalizer final : public Normalizer {
 public:
  std::string apply(std::string text) const override { return text; }
};

// Those that ask Unicode; null for the others.
std::unique_ptr<const Normalizer> make_unicode_step(const std::string& type) {
  if (type == "NFC") return std::make_unique<FormNormalizer>(UnicodeForm::nfc);
  if (type == "NFD") return std::make_unique<FormNormalizer>(UnicodeForm::nfd);
  if (type == "NFKC") return std::make_unique<FormNormalizer>(UnicodeForm::nfkc);
  if (type == "Lowercase") return std::make_unique<LowercaseNormalizer>();
  if (type == "StripAccents") return std::make_unique<StripAccentsNormalizer>();
  return nullptr;
}

}  // namespace

void require_unicode_text(const JsonView& who) {
  if (has_unicode_text()) return;
  throw Error(ErrorCode::unavailable, who.place() + ": " + no_unicode_text());
}

std::unique_ptr<const Normalizer> make_normalizer(const JsonView& spec) {
  if (spec.is_null()) return std::make_unique<NoNormalizer>();
  const JsonView type = spec.get("type");
  const std::string name = type.text();
  if (auto step = make_unicode_step(name)) {
    require_unicode_text(type);
    return step;
  }
  if (name == "Sequence") return std::make_unique<NormalizerSequence>(spec.get("normalizers"));
  if (name == "Prepend") return std::make_unique<PrependNormalizer>(spec.get("prepend").text());
  if (name == "BertNormalizer") return make_bert_normalizer(spec);
  if (name == "Replace") {
    return std::make_unique<ReplaceNormalizer>(TextPattern(spec.get("pattern")),
                                               spec.get("content").text());
  }
  type.refuse_choice({"NFC", "NFD", "NFKC", "Lowercase", "StripAccents", "Prepend", "Replace",
                      "BertNormalizer", "Sequence"});
}

}  // namespace zl
