#include "scenarios/run/text_lines.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "scenarios/run/corpus.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

// Calls line(number from 1, text) for every line that is not blank.
template <class Line>
void for_lines(std::string_view text, const Line& line) {
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!one.empty() && one.back() == '\r') one.remove_suffix(1);
    if (one.find_first_not_of(" \t") != std::string_view::npos) line(number, one);
  }
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorCode::invalid, where + ": " + what);
}

// A label as the file has it: a text, or a whole number.
struct Given {
  std::string text;
  bool is_number = false;
  std::string where;
};

Given given_label(const Json& object, const std::string& where) {
  if (!object.contains("label")) refuse(where, "label: missing; give a text or a whole number");
  const Json& label = object["label"];
  if (label.is_string()) {
    const auto text = label.get<std::string>();
    if (text.empty()) refuse(where, "label: is empty; give a text or a whole number");
    return {text, false, where};
  }
  if (label.is_number_integer() && label.get<std::int64_t>() >= 0) {
    return {std::to_string(label.get<std::int64_t>()), true, where};
  }
  refuse(where, "label: " + shown(label) + " is neither a text nor a whole number from 0 on");
}

std::vector<std::string> numbers_up_to(const std::vector<Given>& given, std::int64_t most) {
  std::set<std::int64_t> found;
  for (const Given& each : given) {
    const std::int64_t label = each.text.size() > 9 ? most : std::stoll(each.text);
    if (label >= most) {
      refuse(each.where, "label: " + each.text + " is not one of 0 to " + std::to_string(most - 1) +
                             ", the labels of the model; give --labels as many as there are");
    }
    found.insert(label);
  }
  std::vector<std::string> names;
  for (std::int64_t label = 0; label <= *found.rbegin(); ++label) {
    if (found.count(label) == 0) {
      refuse(given.front().where.substr(0, given.front().where.rfind(':')),
             "label: no line has " + std::to_string(label) + ", though one has " +
                 std::to_string(*found.rbegin()) + "; number the labels from 0 without gaps");
    }
    names.push_back(std::to_string(label));
  }
  return names;
}

std::vector<std::string> names_of(const std::vector<Given>& given, std::int64_t most) {
  const bool numbers = given.front().is_number;
  for (const Given& each : given) {
    if (each.is_number == numbers) continue;
    refuse(each.where, "label: \"" + shortened(each.text) + "\" is a " +
                           (each.is_number ? "number" : "text") +
                           ", those before it are not; make all of one kind");
  }
  if (numbers) return numbers_up_to(given, most);
  std::set<std::string> names;
  for (const Given& each : given) {
    names.insert(each.text);
    if (static_cast<std::int64_t>(names.size()) <= most) continue;
    refuse(each.where, "label: \"" + shortened(each.text) + "\" is one more than the " +
                           std::to_string(most) +
                           " labels of the model; give --labels as many as there are");
  }
  return {names.begin(), names.end()};
}

bool are_among(const std::vector<std::string>& some, const std::vector<std::string>& all) {
  return std::all_of(some.begin(), some.end(), [&all](const std::string& each) {
    return std::find(all.begin(), all.end(), each) != all.end();
  });
}

// The names and the numbers of labels. `own`: the names that the data alone would give them.
void take_names(TextLines& lines, std::vector<std::string> own, const LabelsWanted& wanted) {
  const bool fit = !wanted.of_model.empty() && (lines.numbered || are_among(own, wanted.of_model));
  if (fit) {
    lines.labels = wanted.of_model;
  } else {
    lines.labels = std::move(own);
  }
}

std::map<std::string, std::int32_t> numbers_of(const TextLines& lines) {
  std::map<std::string, std::int32_t> ids;
  for (std::size_t i = 0; i < lines.labels.size(); ++i) {
    ids[lines.numbered ? std::to_string(i) : lines.labels[i]] = static_cast<std::int32_t>(i);
  }
  return ids;
}

void set_labels(TextLines& lines, const std::vector<Given>& given, const LabelsWanted& wanted) {
  if (wanted.like != nullptr) {
    lines.labels = wanted.like->labels;
    lines.numbered = wanted.like->numbered;
  } else {
    lines.numbered = given.front().is_number;
    take_names(lines, names_of(given, wanted.most), wanted);
  }
  const std::map<std::string, std::int32_t> ids = numbers_of(lines);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto found = ids.find(given[i].text);
    if (found == ids.end()) {
      refuse(given[i].where, "label: \"" + shortened(given[i].text) +
                                 "\" is none of the data that is trained on, which has " +
                                 join(lines.labels, ", "));
    }
    lines.lines[i].label = found->second;
  }
}

TextLines read_json_lines(const std::string& path, const LabelsWanted& wanted) {
  TextLines out{.name = path};
  std::vector<Given> given;
  for_lines(read_file(path), [&](std::size_t number, std::string_view line) {
    const std::string where = path + ":" + std::to_string(number);
    const Json object = parse_json(line, where);
    if (!object.is_object()) refuse(where, "not an object such as {\"text\": \"...\"}");
    if (!object.contains("text")) refuse(where, "text: missing");
    TextLine one{text_at(object["text"], where + ": text")};
    if (object.contains("text_pair")) {
      one.pair = text_at(object["text_pair"], where + ": text_pair");
    }
    out.lines.push_back(std::move(one));
    if (wanted.any) given.push_back(given_label(object, where));
  });
  if (out.lines.empty())
    refuse(path, "has no line such as {\"text\": \"...\", \"label\": \"...\"}");
  if (wanted.any) set_labels(out, given, wanted);
  return out;
}

// "1Sm3:12 And the sons ...": book, chapter and text; a book's name may begin with a digit.
struct Verse {
  std::string_view book, chapter, text;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::optional<Verse> verse_of(std::string_view line) {
  const std::size_t space = line.find(' '), colon = line.find(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon > space) {
    return std::nullopt;
  }
  std::size_t chapter = colon;
  while (chapter > 0 && is_digit(line[chapter - 1])) --chapter;
  if (chapter == colon || chapter == 0) return std::nullopt;
  return Verse{line.substr(0, chapter), line.substr(0, colon), line.substr(space + 1)};
}

// By chapter, so that no neighbour of a verse tells its names: each tenth is held out, the one
// before it is for choosing between settings.
TextLines testaments(bool held_out, const LabelsWanted& wanted) {
  constexpr int kOldBooks = 39, kBooks = 66;
  TextLines out{.name = held_out ? kHeldOutTestaments : kTestaments};
  const std::vector<std::string> names{"new", "old"};
  take_names(out, names, {.of_model = wanted.like ? wanted.like->labels : wanted.of_model});
  if (wanted.like != nullptr && out.labels != wanted.like->labels) {
    refuse(out.name, "label: has " + join(names, ", ") + "; the data that is trained on has " +
                         join(wanted.like->labels, ", "));
  }
  const std::map<std::string, std::int32_t> ids = numbers_of(out);
  const std::string path = king_james_bible(), text = read_file(path);
  std::string book, chapter;
  int books = 0, chapters = 0;
  for_lines(text, [&](std::size_t number, std::string_view line) {
    const auto verse = verse_of(line);
    if (!verse) refuse(path + ":" + std::to_string(number), "not a verse such as Ge1:1 In the ...");
    if (verse->book != book) ++books;
    if (verse->chapter != chapter) ++chapters;
    book = verse->book;
    chapter = verse->chapter;
    const int part = (chapters - 1) % 10;
    if (part == 8 || (part == 9) != held_out) return;
    const char* label = books > kOldBooks ? "new" : "old";
    out.lines.push_back({std::string(verse->text), std::nullopt, ids.at(label)});
  });
  if (books != kBooks) {
    refuse(path, "has " + std::to_string(books) + " books, not 66; remove it, it is made anew");
  }
  return out;
}

}  // namespace

std::vector<std::int64_t> TextLines::counts() const {
  std::vector<std::int64_t> counts(labels.size());
  for (const TextLine& line : lines) {
    if (line.label >= 0) ++counts[static_cast<std::size_t>(line.label)];
  }
  return counts;
}

bool is_text_lines(std::string_view data) {
  return data.ends_with(".jsonl") || data == kTestaments || data == kHeldOutTestaments;
}

TextLines read_text_lines(const std::string& path, const LabelsWanted& wanted) {
  if (path == kTestaments || path == kHeldOutTestaments) {
    return testaments(path == kHeldOutTestaments, wanted);
  }
  return read_json_lines(path, wanted);
}

}  // namespace zl
