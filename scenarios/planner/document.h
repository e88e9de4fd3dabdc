// The scenario that is being edited: the text of a scenario file, and edits of single keys.
// Ownership: a value. Threads: value type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zl {

class Document {
 public:
  // A study or model of the catalogue, or a file. Throws Error{invalid} for a name that is none of
  // them and for malformed JSON; whether the scenario makes sense shows when it is evaluated.
  static Document open(const std::string& name_or_path);
  // `source`: what messages call it; relative paths inside are relative to it.
  static Document parse(std::string_view json, std::string source);

  const std::string& text() const { return text_; }
  const std::string& source() const { return source_; }

  // Value at a dotted path ("run.ranks") as a person would type it; empty when absent. Objects come
  // back as JSON.
  std::string get(const std::string& path) const;
  // Whether the value is an object instead of a name.
  bool is_inline(const std::string& path) const;
  // Whole numbers become numbers, JSON objects and lists themselves, "" removes the key, and all
  // else is text.
  Document with(const std::string& path, const std::string& value) const;

  std::vector<std::string> strategies() const;  // names, or JSON of inline ones
  Document with_strategies(const std::vector<std::string>& strategies) const;

  // Dotted paths at which two documents differ, strategies as one.
  static std::vector<std::string> differences(const Document& a, const Document& b);

  bool operator==(const Document&) const = default;

 private:
  std::string text_ = "{}", source_;
};

}  // namespace zl
