// A value of a JSON file that knows where it stands, so that every complaint names file and path.
// Ownership: views share the parsed document. Threads: immutable; share it freely.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zl {

class JsonView {
 public:
  // The whole of a file; Error{invalid} naming it when it is missing, too large or no JSON.
  static JsonView of_file(const std::string& path);
  // As if `text` were what the file `name` holds.
  static JsonView of_text(std::string_view text, const std::string& name);

  // Throws Error{invalid} "FILE: PATH: defect", PATH as model.merges[3]; the whole file has none.
  [[noreturn]] void refuse(const std::string& defect) const;
  // "FILE: PATH: "Value" is not one of A, B": what zerolab does not run.
  [[noreturn]] void refuse_choice(std::initializer_list<const char*> known) const;
  std::string place() const;  // "FILE: PATH"

  bool is_null() const;  // also of what get() did not find
  bool is_object() const;
  bool is_array() const;
  bool is_text() const;
  bool is_number() const;

  // The rest throws as refuse() does where the value is of another kind.
  JsonView get(const char* key) const;  // of an object; null when it has no such key
  std::vector<JsonView> items() const;  // of an array
  std::vector<std::pair<std::string, JsonView>> members() const;  // of an object, by name

  std::string text() const;
  std::string text_or(const std::string& absent) const;  // null: `absent`
  bool flag() const;
  bool flag_or(bool absent) const;
  std::int64_t integer(std::int64_t least, std::int64_t most) const;

 private:
  struct Document;
  JsonView(std::shared_ptr<const Document> document, const void* value, std::string path);

  std::shared_ptr<const Document> document_;
  const void* value_;  // a value of the JSON library, inside the document
  std::string path_;
};

}  // namespace zl
