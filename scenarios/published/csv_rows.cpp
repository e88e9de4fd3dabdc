#include "scenarios/published/csv_rows.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"

namespace zl {
namespace {

class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& source) : text_(text), source_(source) {}

  bool at_end() const { return next_ == text_.size(); }
  int line() const { return line_; }

  std::vector<std::string> record() {
    std::vector<std::string> fields{""};
    while (!at_end()) {
      const char c = text_[next_++];
      if (c == '"') {
        quoted(fields.back());
      } else if (c == ',') {
        fields.emplace_back();
      } else if (c == '\n') {
        ++line_;
        break;
      } else if (c != '\r') {
        fields.back() += c;
      }
    }
    return fields;
  }

  [[noreturn]] void fail(int line, const std::string& problem) const {
    throw Error(ErrorCode::invalid, source_ + ":" + std::to_string(line) + ": " + problem);
  }

 private:
  void quoted(std::string& field) {
    const int begin = line_;
    while (!at_end()) {
      const char c = text_[next_++];
      if (c == '\n') ++line_;
      if (c != '"') {
        field += c;
      } else if (!at_end() && text_[next_] == '"') {
        field += text_[next_++];
      } else {
        return;
      }
    }
    fail(begin, "a quote that does not end");
  }

  std::string_view text_;
  const std::string& source_;
  std::size_t next_ = 0;
  int line_ = 1;
};

}  // namespace

const std::string& CsvRow::at(std::string_view column) const {
  static const std::string none;
  const auto found = fields.find(column);
  return found == fields.end() ? none : found->second;
}

std::vector<CsvRow> read_csv(std::string_view text, const std::string& source,
                             const std::vector<std::string>& required) {
  CsvReader reader(text, source);
  const std::vector<std::string> names = reader.record();
  for (const std::string& column : required) {
    if (std::ranges::find(names, column) != names.end()) continue;
    const std::string near = nearest(column, names);
    reader.fail(1, "column \"" + column + "\" is missing" +
                       (near.empty() ? "" : "; the nearest is \"" + shortened(near) + "\"") +
                       ". Needed: " + join(required, ", "));
  }
  std::vector<CsvRow> rows;
  if (reader.at_end()) reader.fail(1, "no rows below the header");
  while (!reader.at_end()) {
    const int line = reader.line();
    std::vector<std::string> fields = reader.record();
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (fields.size() != names.size()) {
      reader.fail(line, std::to_string(fields.size()) + " fields where the header has " +
                            std::to_string(names.size()));
    }
    CsvRow row{line, {}};
    for (std::size_t i = 0; i < names.size(); ++i) row.fields[names[i]] = std::move(fields[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace zl
