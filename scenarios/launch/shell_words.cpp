#include "scenarios/launch/shell_words.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "core/base/error.h"

namespace zl {
namespace {

// Variables of variables could grow without end.
constexpr std::size_t kLongest = 65'536, kMost = std::size_t{16} << 20;

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class ShellReader {
 public:
  ShellReader(std::string_view text, std::string_view source) : text_(text), source_(source) {}

  std::vector<ShellWord> read() {
    while (at_ < text_.size()) step();
    if (in_array_) fail(opened_, "the array's ( has no )");
    end_word();
    return std::move(words_);
  }

 private:
  [[noreturn]] void fail(std::int64_t line, const std::string& what) const {
    throw Error(ErrorCode::invalid,
                std::string(source_) + ":" + std::to_string(line) + ": " + what);
  }

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void step() {
    const char c = text_[at_];
    if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\\') {
      escape();
    } else if (c == '\n' || c == ';' || c == '&' || c == '|') {
      end_command(c);
    } else if (c == '(' || c == ')') {
      parenthesis(c);
    } else if (c == ' ' || c == '\t' || c == '\r') {
      end_word();
      ++at_;
    } else if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '$' || c == '`') {
      expand();
    } else {
      add(c);
      ++at_;
    }
  }

  void add(char c) {
    if (!in_word_) word_ = {.text = "", .line = line_};
    in_word_ = true;
    word_.text += c;
  }

  void escape() {
    if (peek(1) == '\r' && peek(2) == '\n') ++at_;
    if (peek(1) == '\n') {
      ++line_;
    } else if (at_ + 1 < text_.size()) {
      add(peek(1));
    }
    at_ += 2;
  }

  // Inside an array a line's end is a space.
  void end_command(char c) {
    end_word();
    if (!in_array_ && !words_.empty()) words_.back().is_end = true;
    if (c == '\n') ++line_;
    ++at_;
  }

  // NAME=( begins an array; other parentheses only divide words.
  void parenthesis(char c) {
    if (c == '(' && in_word_ && word_.text.ends_with('=')) {
      in_word_ = false;
      in_array_ = true;
      opened_ = line_;
    } else {
      end_word();
      if (c == ')' && in_array_) {
        in_array_ = false;
        if (!words_.empty()) words_.back().is_end = true;
      }
    }
    ++at_;
  }

  void quoted(char mark) {
    const std::int64_t begin = line_;
    if (!in_word_) word_ = {.text = "", .line = line_};
    in_word_ = true;
    in_quotes_ = mark == '"';
    for (++at_; at_ < text_.size() && text_[at_] != mark;) {
      const char c = text_[at_];
      if (mark == '"' && c == '\\' && peek(1) == '\n') {
        at_ += 2;
        ++line_;
        continue;
      }
      if (mark == '"' && c == '$') {
        expand();
        continue;
      }
      if (mark == '"' && c == '\\' && (peek(1) == '"' || peek(1) == '\\' || peek(1) == '$')) ++at_;
      if (text_[at_] == '\n') ++line_;
      word_.text += text_[at_++];
    }
    if (at_ >= text_.size()) fail(begin, std::string("the quote ") + mark + " has no end");
    in_quotes_ = false;
    ++at_;
  }

  // What stands between marks that nest: "(...)", "((...))", "{...}".
  std::string_view nested(char open, char close) {
    const std::int64_t begin = line_;
    const std::size_t from = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++line_;
      if (text_[at_] == open) ++depth;
      if (text_[at_] == close && --depth == 0) {
        ++at_;
        return text_.substr(from + 1, at_ - from - 2);
      }
    }
    fail(begin, std::string("\"$") + open + "\" has no end");
  }

  void expand() {
    if (!in_word_) word_ = {.text = "", .line = line_};
    in_word_ = true;
    const std::size_t from = at_;
    if (text_[at_] == '`') {
      const std::size_t end = text_.find('`', at_ + 1);
      if (end == std::string_view::npos) fail(line_, "the quote ` has no end");
      at_ = end + 1;
    } else if (peek(1) == '(') {
      ++at_;
      nested('(', ')');
    } else if (peek(1) == '{') {
      ++at_;
      const std::string_view inside = nested('{', '}');
      return insert(inside, text_.substr(from, at_ - from));
    } else {
      ++at_;
      std::size_t end = at_;
      while (end < text_.size() && is_name(text_[end])) ++end;
      if (end == at_ && at_ < text_.size()) ++end;  // $@, $#
      const std::string_view name = text_.substr(at_, end - at_);
      at_ = end;
      return insert(name, text_.substr(from, at_ - from));
    }
    leave(text_.substr(from, at_ - from));
  }

  void leave(std::string_view written) {
    word_.text += written;
    if (word_.unset.empty()) word_.unset = written;
  }

  // Arrays are read where they are written, and arguments of the script are not known.
  void insert(std::string_view name, std::string_view written) {
    if (name == "@" || name.ends_with("[@]") || name.ends_with("[*]")) return;
    const std::size_t otherwise = name.find(":-");
    const auto known = values_.find(name.substr(0, std::min(otherwise, name.size())));
    if (known != values_.end()) {
      put(known->second);
    } else if (otherwise != std::string_view::npos) {
      word_.text += name.substr(otherwise + 2);
    } else {
      leave(written);
    }
    if (word_.text.size() > kLongest) fail(line_, "a word of more than 64 KiB");
  }

  // Outside quotes a value falls into words, unless it becomes another variable's.
  void put(const std::string& value) {
    if (word_.text.size() + value.size() > kLongest) fail(line_, "a word of more than 64 KiB");
    const bool is_whole = in_quotes_ || (!in_array_ && is_assignment());
    if (is_whole) word_.text += value;
    if (is_whole) return;
    for (const char c : value) {
      if (c == ' ' || c == '\t' || c == '\n') {
        end_word();
      } else {
        add(c);
      }
    }
  }

  bool is_assignment() const {
    const std::size_t equals = word_.text.find('=');
    if (equals == std::string::npos || equals == 0) return false;
    for (std::size_t i = 0; i < equals; ++i) {
      if (!is_name(word_.text[i])) return false;
    }
    return true;
  }

  void end_word() {
    if (!in_word_) return;
    in_word_ = false;
    if (!in_array_ && is_assignment()) {
      const std::size_t equals = word_.text.find('=');
      if (word_.unset.empty()) {
        values_[word_.text.substr(0, equals)] = word_.text.substr(equals + 1);
      }
    } else if (!word_.text.empty()) {
      expanded_ += word_.text.size();
      if (expanded_ > kMost) fail(line_, "variables make more than 16 MiB of words");
      words_.push_back(std::move(word_));
    }
  }

  std::string_view text_, source_;
  std::size_t at_ = 0, expanded_ = 0;
  std::int64_t line_ = 1, opened_ = 0;
  bool in_word_ = false, in_array_ = false, in_quotes_ = false;
  ShellWord word_;
  std::vector<ShellWord> words_;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view text, std::string_view source) {
  return ShellReader(text, source).read();
}

}  // namespace zl
