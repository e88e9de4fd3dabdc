// What goes to stdout: whole texts, written in one go. Messages go to stderr through core/base/log.
// Ownership: values. Threads: the main thread.
#pragma once

#include <string>
#include <string_view>

#include "results/format.h"
#include "simulator/json/reading.h"

namespace zl::cli {

// As visible() has it: in JSON the same text. Throws Error{failed} when stdout cannot take it (a
// full disk, a closed pipe).
void print(std::string_view text);

// One line on stderr, whatever the verbosity.
void print_error(std::string_view message);

// A newline at the end, invalid UTF-8 replaced.
std::string pretty(const Json& value);

// Columns that stdout shows: COLUMNS where it is set, else those of the terminal; 0: no limit.
std::size_t terminal_width();

// Two columns, "key" and "value": one row per leaf, nested keys joined by dots.
Table leaves(const Json& object);

// For people: the values of leaves() in the units that their keys name (memory, bandwidths, FLOPs,
// seconds, shares).
void name_units(Table& table);

// For people: the columns that the terminal shows, saying which are left out; of other formats all.
std::string fitted_text(Table table, Format format);

// Whether a page is for a browser (.html, .htm) or Markdown (.md). Throws Error{usage} naming the
// option for a file that ends otherwise.
bool is_html_page(const std::string& option, const std::string& file);

// Written whole or not at all.
void write_file(const std::string& path, std::string_view text);

}  // namespace zl::cli
