// Texts with labels: a file of JSON Lines, or the verses of the Bible by testament.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/files/run_settings.h"

namespace zl {

struct TextLine {
  std::string text;
  std::optional<std::string> pair = std::nullopt;
  std::int32_t label = -1;  // index into TextLines::labels; -1: it has none
};

struct TextLines {
  std::string name;  // of the file, for messages
  std::vector<TextLine> lines;
  std::vector<std::string> labels;  // their names, by number; empty: nobody asked for them
  bool numbered = false;            // the file has numbers, not names

  std::vector<std::int64_t> counts() const;  // lines, by label
};

bool is_text_lines(std::string_view data);  // ends in .jsonl, or is of the testaments' names

struct LabelsWanted {
  bool any = false;
  std::int64_t most = 0;            // that the model tells
  const TextLines* like = nullptr;  // the data that is trained on, with labels; null: this is it
  std::vector<std::string> of_model = {};  // the names that the model has for them; empty: none
};

// One object a line, {"text": ..., "text_pair": ..., "label": ...}; labels are texts, numbered in
// their order, or whole numbers from 0 on; where the model has names for its labels, and they are
// numbers or all among those names, as the model numbers them. Throws Error{invalid} "FILE:LINE:
// KEY: defect": no JSON, not UTF-8, a key that is missing or of another type, a label that `like`
// does not have or makes more than `most`, a number that no line has.
TextLines read_text_lines(const std::string& path, const LabelsWanted& wanted);

}  // namespace zl
