// The documents of the project: links and paths lead somewhere, every room has a README, the first
// one stays short, and the example that is shown is the one that is compiled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

const std::regex kFence(R"(^\s*```)");

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Lines lines_in(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return lines_of(text.str());
}

// Characters, not bytes.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; }));
}

// Folders of other things than sources begin with a dot or are builds.
bool is_foreign(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with(".") || name.starts_with("build");
}

std::vector<fs::path> documents() {
  std::vector<fs::path> found;
  auto walk = fs::recursive_directory_iterator(ZL_SOURCE_DIR);
  for (const auto& entry : walk) {
    if (entry.is_directory() && is_foreign(entry.path())) {
      walk.disable_recursion_pending();
    } else if (entry.path().extension() == ".md") {
      found.push_back(entry.path());
    }
  }
  return found;
}

// The lines outside fenced blocks.
Lines prose(const Lines& lines) {
  Lines kept;
  bool fenced = false;
  for (const std::string& line : lines) {
    const bool fence = std::regex_search(line, kFence);
    if (fence) fenced = !fenced;
    if (!fence && !fenced) kept.push_back(line);
  }
  return kept;
}

// What the first group of `pattern` finds in the prose.
Lines found_in(const Lines& lines, const std::regex& pattern) {
  Lines found;
  for (const std::string& line : prose(lines)) {
    for (std::sregex_iterator it(line.begin(), line.end(), pattern), end; it != end; ++it) {
      found.push_back((*it)[1]);
    }
  }
  return found;
}

Lines links_of(const Lines& lines) {
  static const std::regex link(R"(\]\(([^)\s]+)\))");
  return found_in(lines, link);
}

// Files and folders of the project that are named in `code`.
Lines paths_of(const Lines& lines) {
  static const std::regex path(
      "`((?:core|backends|simulator|scenarios|results|gui|tests)/[A-Za-z0-9_./-]+)`");
  return found_in(lines, path);
}

// Headers and folders that rows of tables begin with.
Lines listed_in(const Lines& lines) {
  static const std::regex row(R"(^\| `([A-Za-z0-9_./-]+(?:\.h|/))`)");
  return found_in(lines, row);
}

// A heading as the anchors of web pages spell it.
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_') {
      anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

bool has_anchor(const Lines& lines, const std::string& anchor) {
  static const std::regex heading(R"(^#+ +(.*)$)");
  const Lines headings = found_in(lines, heading);
  return std::any_of(headings.begin(), headings.end(),
                     [&](const std::string& text) { return anchor_of(text) == anchor; });
}

// Why a link of `document` leads nowhere; empty: it does not.
std::string broken(const fs::path& document, const Lines& lines, const std::string& link) {
  if (link.starts_with("http://") || link.starts_with("https://")) return "";
  const std::size_t hash = link.find('#');
  const std::string file = link.substr(0, hash);
  const fs::path target = file.empty() ? document : document.parent_path() / file;
  if (!fs::exists(target)) return link + ": there is no such file";
  if (hash == std::string::npos) return "";
  const bool found = has_anchor(file.empty() ? lines : lines_in(target), link.substr(hash + 1));
  return found ? "" : link + ": there is no such heading";
}

TEST(Docs, LinksLeadSomewhere) {
  std::size_t links = 0;
  for (const fs::path& document : documents()) {
    const Lines lines = lines_in(document);
    for (const std::string& link : links_of(lines)) {
      ++links;
      EXPECT_EQ(broken(document, lines, link), "") << document;
    }
  }
  EXPECT_GT(links, 20u) << "the scan found too little to mean anything";
}

TEST(Docs, PathsExist) {
  std::size_t paths = 0;
  for (const fs::path& document : documents()) {
    for (const std::string& path : paths_of(lines_in(document))) {
      ++paths;
      EXPECT_TRUE(fs::exists(fs::path(ZL_SOURCE_DIR) / path)) << document << " names " << path;
    }
  }
  EXPECT_GT(paths, 20u) << "the scan found too little to mean anything";
}

TEST(Docs, WhatTablesListExists) {
  std::size_t listed = 0;
  for (const fs::path& document : documents()) {
    for (const std::string& path : listed_in(lines_in(document))) {
      ++listed;
      EXPECT_TRUE(fs::exists(document.parent_path() / path) ||
                  fs::exists(fs::path(ZL_SOURCE_DIR) / path))
          << document << " lists " << path;
    }
  }
  EXPECT_GT(listed, 20u) << "the scan found too little to mean anything";
}

TEST(Docs, EveryRoomHasAReadme) {
  std::vector<fs::path> rooms{fs::path(ZL_SOURCE_DIR) / "backends/cuda"};
  for (const auto& entry : fs::directory_iterator(ZL_SOURCE_DIR)) {
    if (entry.is_directory() && !is_foreign(entry.path())) rooms.push_back(entry.path());
  }
  EXPECT_GE(rooms.size(), 8u);
  for (const fs::path& room : rooms) EXPECT_TRUE(fs::exists(room / "README.md")) << room;
}

bool names(const Lines& lines, const std::string& text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(Docs, EveryFolderOfARoomIsInItsReadme) {
  for (const char* room : {"backends", "results", "scenarios", "simulator"}) {
    const fs::path folder = fs::path(ZL_SOURCE_DIR) / room;
    const Lines lines = lines_in(folder / "README.md");
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!entry.is_directory()) continue;
      EXPECT_TRUE(names(lines, name)) << room << "/" << name;
    }
  }
}

TEST(Docs, EveryFloorOfTheCoreIsInItsReadmeAndPicture) {
  const fs::path core = fs::path(ZL_SOURCE_DIR) / "core";
  const Lines table = lines_in(core / "README.md"), picture = lines_in(core / "architecture.svg");
  for (const auto& entry : fs::directory_iterator(core)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(names(table, "| " + name + " |")) << name;
    EXPECT_TRUE(names(picture, ">" + name + "</text>")) << name;
  }
}

TEST(Docs, TheFirstReadmeIsAPage) {
  const Lines lines = lines_in(fs::path(ZL_SOURCE_DIR) / "README.md");
  EXPECT_LE(lines.size(), 130u);
  for (const std::string& line : lines) EXPECT_LE(columns(line), 100u) << line;
}

// Tables do not wrap, nor does what a program printed.
TEST(Docs, LinesAreAtMostAHundredColumns) {
  for (const fs::path& document : documents()) {
    for (const std::string& line : prose(lines_in(document))) {
      if (line.starts_with("|")) continue;
      EXPECT_LE(columns(line), 100u) << document << "\n" << line;
    }
  }
}

// The lines of C++ blocks, without indentation, empty lines and "// ..." for what is left out.
Lines shown_code(const Lines& lines) {
  Lines code;
  bool inside = false;
  for (const std::string& line : lines) {
    if (std::regex_search(line, kFence)) {
      inside = !inside && line.find("cpp") != std::string::npos;
      continue;
    }
    const std::size_t begin = line.find_first_not_of(' ');
    if (!inside || begin == std::string::npos) continue;
    const std::string text = line.substr(begin);
    if (text != "// ...") code.push_back(text);
  }
  return code;
}

// The first line of `shown` that `source` does not have after those before it; empty: none.
std::string first_missing(const Lines& shown, const Lines& source) {
  auto next = source.begin();
  for (const std::string& line : shown) {
    next = std::find_if(next, source.end(),
                        [&](const std::string& whole) { return whole.ends_with(line); });
    if (next == source.end()) return line;
    ++next;
  }
  return "";
}

TEST(Docs, TheExampleIsTheOneThatIsCompiled) {
  const fs::path root(ZL_SOURCE_DIR);
  const Lines shown = shown_code(lines_in(root / "core/README.md"));
  EXPECT_GE(shown.size(), 10u);
  EXPECT_EQ(first_missing(shown, lines_in(root / "tests/example/train_tiny.cpp")), "");
}

TEST(Docs, TheChecksSeeWhatIsWrong) {
  const fs::path here = fs::path(ZL_SOURCE_DIR) / "README.md";
  const Lines text = lines_of(
      "# A b, c\nsee [x](core/none.h), `core/none.h` and [y](#a-b-c)\n"
      "```cpp\nint a;\n// ...\n  int b;\n[z](nowhere)\n```\n"
      "| `none.h` | x |\n| `dir/`, y | `none.h` |\n| `key` | z |\n");
  EXPECT_EQ(links_of(text), (Lines{"core/none.h", "#a-b-c"}));
  EXPECT_EQ(paths_of(text), Lines{"core/none.h"});
  EXPECT_EQ(listed_in(text), (Lines{"none.h", "dir/"}));
  EXPECT_NE(broken(here, text, "core/none.h"), "");
  EXPECT_NE(broken(here, text, "#nothing"), "");
  EXPECT_EQ(broken(here, text, "#a-b-c"), "");
  EXPECT_EQ(broken(here, text, "https://example.org/none"), "");
  EXPECT_EQ(shown_code(text), (Lines{"int a;", "int b;", "[z](nowhere)"}));
  EXPECT_EQ(first_missing({"a", "c"}, {"a", "b", "c"}), "");
  EXPECT_EQ(first_missing({"c", "a"}, {"a", "b", "c"}), "a");
  EXPECT_EQ(columns("µ…"), 2u);
}

}  // namespace
