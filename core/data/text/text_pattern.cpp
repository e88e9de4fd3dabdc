#include "core/data/text/text_pattern.h"

#include <utility>

namespace zl {
namespace {

using TakeSpan = std::function<void(std::size_t, std::size_t)>;

// Joins spans as the behaviour says. Gets all spans of a text in order, matches or not.
class SpanJoiner {
 public:
  SpanJoiner(SplitBehavior behavior, const TakeSpan& take) : behavior_(behavior), take_(take) {}

  void add(std::size_t begin, std::size_t end, bool matched) {
    if (begin == end || (matched && behavior_ == SplitBehavior::removed)) {
      if (begin != end) flush();
      return;
    }
    const bool joins = open_ && joins_open(matched);
    if (!joins) flush();
    if (!open_) begin_ = begin;
    end_ = end;
    open_ = true;
    last_matched_ = matched;
  }

  void flush() {
    if (open_) take_(begin_, end_);
    open_ = false;
  }

 private:
  bool joins_open(bool matched) const {
    switch (behavior_) {
      case SplitBehavior::isolated:
      case SplitBehavior::removed:
        return false;
      case SplitBehavior::merged_previous:
        return matched && !last_matched_;
      case SplitBehavior::merged_next:
        return last_matched_ && !matched;
      case SplitBehavior::contiguous:
        return matched == last_matched_;
    }
    return false;
  }

  SplitBehavior behavior_;
  const TakeSpan& take_;
  std::size_t begin_ = 0, end_ = 0;
  bool open_ = false, last_matched_ = false;
};

}  // namespace

TextPattern::TextPattern(const JsonView& spec) {
  const JsonView literal = spec.get("String");
  if (!literal.is_null()) {
    literal_ = literal.text();
    if (literal_.empty()) literal.refuse("an empty text is found everywhere; name one");
    return;
  }
  const JsonView regex = spec.get("Regex");
  if (regex.is_null()) spec.refuse("neither String nor Regex");
  known_ = known_split(regex.text());
  if (known_ != nullptr) return;
  regex_ = std::make_shared<const Regex>(regex.text(), regex.place());
}

void TextPattern::find(std::string_view text, const TakeSpan& take) const {
  if (known_ != nullptr) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = known_(text, begin);
      take(begin, end);
      begin = end;
    }
  } else if (regex_ != nullptr) {
    regex_->find(text, take);
  } else {
    for (std::size_t at = text.find(literal_); at != std::string_view::npos;) {
      take(at, at + literal_.size());
      at = text.find(literal_, at + literal_.size());
    }
  }
}

std::string TextPattern::replaced(std::string_view text, std::string_view by) const {
  std::string out;
  std::size_t done = 0;
  find(text, [&](std::size_t begin, std::size_t end) {
    out += text.substr(done, begin - done);
    out += by;
    done = end;
  });
  out += text.substr(done);
  return out;
}

SplitBehavior parse_split_behavior(const JsonView& name) {
  using Row = std::pair<const char*, SplitBehavior>;
  for (const auto& [known, behavior] : {Row{"Isolated", SplitBehavior::isolated},
                                        {"Removed", SplitBehavior::removed},
                                        {"MergedWithPrevious", SplitBehavior::merged_previous},
                                        {"MergedWithNext", SplitBehavior::merged_next},
                                        {"Contiguous", SplitBehavior::contiguous}}) {
    if (name.text() == known) return behavior;
  }
  name.refuse_choice({"Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"});
}

void split_text(std::string_view text, const TextPattern& pattern, SplitBehavior behavior,
                bool invert, const TakeSpan& take) {
  SpanJoiner joiner(behavior, take);
  std::size_t done = 0;
  pattern.find(text, [&](std::size_t begin, std::size_t end) {
    joiner.add(done, begin, invert);
    joiner.add(begin, end, !invert);
    done = end;
  });
  joiner.add(done, text.size(), invert);
  joiner.flush();
}

}  // namespace zl
