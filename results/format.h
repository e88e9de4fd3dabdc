// Results as text: one small table type in four formats, and the run object of `zerolab run`.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/train/run_result.h"
#include "results/environment.h"

namespace zl {

enum class Format : std::uint8_t { table, wide, md, csv, json };

// Throws Error{usage} naming the accepted values.
Format parse_format(std::string_view text);

enum class Align : std::uint8_t { left, right };

// How a number reads for people (table, md): 1.50 GiB, 12.3 ms, 4.2 %. Programs (csv, json) get
// the plain value in bytes, seconds, FLOP/s, bytes a second or as a fraction.
// Rates: 989.4 TFLOP/s, 3.35 TB/s (of powers of 1,000, as data sheets have them).
enum class Unit : std::uint8_t { none, bytes, seconds, fraction, flop_rate, byte_rate };

struct Column {
  std::string name;
  Align align = Align::right;
  Unit unit = Unit::none;
  bool is_prose = false;  // sentences, which a narrow terminal shows the beginning of
};

using Cell =
    std::variant<std::monostate, std::string, std::int64_t, double>;  // monostate: no value

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`
};

// One value as the formats for people show it; no value is "-". On one line, as
// visible() has it.
std::string readable(const Cell& cell, Unit unit);

// Columns of a terminal, as far as code points tell.
std::size_t text_width(std::string_view text);

// table: aligned by UTF-8 code points; wide: likewise, of a table with more columns. md: GitHub's.
// csv: header line, quoting of RFC 4180, lines end in \n, no value is an empty field. json: an
// array with one object per row and line; no value and non-finite numbers are null. Ends in a
// newline. Throws Error{failed} on a row of other length.
std::string render(const Table& table, Format format);

// The run object (results/README.md): one line of JSON without a newline. Non-finite numbers, an
// unknown MFU, the id of a run that is not stored, and every number of a run that never began are
// null; invalid UTF-8 is replaced.
std::string run_json(const std::string& scenario_name, const std::string& backend,
                     const Environment& environment, std::span<const RunResult> results);

}  // namespace zl
