#include "core/data/text/post_processor.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/text.h"

namespace zl {
namespace {

void append_text(TokenizedInput& out, const TokenizedInput& text,
                 std::optional<std::int32_t> type) {
  out.ids.insert(out.ids.end(), text.ids.begin(), text.ids.end());
  out.types.insert(out.types.end(), text.types.begin(), text.types.end());
  if (type)
    std::fill(out.types.end() - static_cast<std::ptrdiff_t>(text.ids.size()), out.types.end(),
              *type);
}

void append_token(TokenizedInput& out, std::int32_t id, std::int32_t type) {
  out.ids.push_back(id);
  out.types.push_back(type);
}

class NoProcessor final : public PostProcessor {
 public:
  TokenizedInput join(TokenizedInput first, const TokenizedInput* second) const override {
    if (second != nullptr) append_text(first, *second, std::nullopt);
    return first;
  }
};

// Rows as a template gives them: texts and special tokens in order.
class TemplateProcessor final : public PostProcessor {
 public:
  TemplateProcessor(const JsonView& spec, std::int64_t vocab)
      : single_(read_row(spec, spec.get("single"), vocab)),
        pair_(read_row(spec, spec.get("pair"), vocab)) {
    if (uses(single_, 1)) spec.get("single").refuse("a second text, of which there is none here");
  }

  TokenizedInput join(TokenizedInput first, const TokenizedInput* second) const override {
    TokenizedInput out;
    for (const Item& item : second == nullptr ? single_ : pair_) {
      if (item.text < 0) {
        for (const std::int32_t id : item.ids) append_token(out, id, item.type);
      } else {
        append_text(out, item.text == 0 || second == nullptr ? first : *second, item.type);
      }
    }
    return out;
  }

 private:
  struct Item {
    int text = -1;  // 0 or 1: that one; -1: the ids
    std::vector<std::int32_t> ids;
    std::int32_t type = 0;
  };
  using Row = std::vector<Item>;

  static bool uses(const Row& row, int text) {
    return std::any_of(row.begin(), row.end(), [=](const Item& item) { return item.text == text; });
  }

  static Row read_row(const JsonView& spec, const JsonView& list, std::int64_t vocab) {
    Row row;
    for (const JsonView& item : list.items()) row.push_back(read_item(spec, item, vocab));
    return row;
  }

  static Item read_item(const JsonView& spec, const JsonView& item, std::int64_t vocab) {
    const JsonView text = item.get("Sequence"), token = item.get("SpecialToken");
    const JsonView& what = text.is_null() ? token : text;
    if (what.is_null()) item.refuse("neither Sequence nor SpecialToken");
    Item out;
    const JsonView type = what.get("type_id");
    out.type = type.is_null() ? 0 : static_cast<std::int32_t>(type.integer(0, 255));
    const JsonView id = what.get("id");
    if (!text.is_null()) {
      if (id.text() != "A" && id.text() != "B") id.refuse_choice({"A", "B"});
      out.text = id.text() == "A" ? 0 : 1;
      return out;
    }
    const std::string name = id.text();
    const JsonView known = spec.get("special_tokens").get(name.c_str());
    if (known.is_null()) id.refuse("\"" + shortened(name) + "\" is not among special_tokens");
    for (const JsonView& number : known.get("ids").items()) {
      out.ids.push_back(static_cast<std::int32_t>(number.integer(0, vocab - 1)));
    }
    return out;
  }

  Row single_, pair_;
};

// cls A sep, cls A sep B sep (BERT), or cls A sep sep B sep with types 0 (RoBERTa).
class ClassifierProcessor final : public PostProcessor {
 public:
  ClassifierProcessor(const JsonView& spec, std::int64_t vocab, bool roberta)
      : cls_(read_id(spec.get("cls"), vocab)),
        sep_(read_id(spec.get("sep"), vocab)),
        roberta_(roberta) {}

  TokenizedInput join(TokenizedInput first, const TokenizedInput* second) const override {
    TokenizedInput out;
    append_token(out, cls_, 0);
    append_text(out, first, 0);
    append_token(out, sep_, 0);
    if (second == nullptr) return out;
    const std::int32_t type = roberta_ ? 0 : 1;
    if (roberta_) append_token(out, sep_, type);
    append_text(out, *second, type);
    append_token(out, sep_, type);
    return out;
  }

 private:
  static std::int32_t read_id(const JsonView& token, std::int64_t vocab) {
    const auto parts = token.items();
    if (parts.size() != 2) token.refuse("not [text, id]");
    return static_cast<std::int32_t>(parts[1].integer(0, vocab - 1));
  }

  std::int32_t cls_, sep_;
  bool roberta_;
};

// Two texts are joined by the first that joins them; the others see one.
class ProcessorSequence final : public PostProcessor {
 public:
  ProcessorSequence(const JsonView& list, std::int64_t vocab) {
    for (const JsonView& item : list.items()) {
      const std::string type = item.get("type").text();
      if (type != "ByteLevel") steps_.push_back(make_post_processor(item, vocab));
    }
    if (steps_.size() > 1) list.refuse("more than one step that adds tokens; one is known here");
    if (steps_.empty()) steps_.push_back(std::make_unique<NoProcessor>());
  }

  TokenizedInput join(TokenizedInput first, const TokenizedInput* second) const override {
    return steps_.front()->join(std::move(first), second);
  }

 private:
  std::vector<std::unique_ptr<const PostProcessor>> steps_;
};

}  // namespace

std::unique_ptr<const PostProcessor> make_post_processor(const JsonView& spec, std::int64_t vocab) {
  if (spec.is_null()) return std::make_unique<NoProcessor>();
  const JsonView type = spec.get("type");
  const std::string name = type.text();
  if (name == "ByteLevel") return std::make_unique<NoProcessor>();
  if (name == "TemplateProcessing") return std::make_unique<TemplateProcessor>(spec, vocab);
  if (name == "BertProcessing" || name == "RobertaProcessing") {
    return std::make_unique<ClassifierProcessor>(spec, vocab, name == "RobertaProcessing");
  }
  if (name == "Sequence") {
    return std::make_unique<ProcessorSequence>(spec.get("processors"), vocab);
  }
  type.refuse_choice(
      {"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel", "Sequence"});
}

}  // namespace zl
