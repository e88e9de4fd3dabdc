#include "results/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/bytes.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

constexpr const char* kNoValue = "-";
constexpr double kMostBytes = 0x1p62;  // of what a whole number holds

std::string readable_seconds(double seconds) {
  const double size = std::abs(seconds);
  if (size == 0 || size >= 1) return fmt::format("{:.3f} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} us", seconds * 1e6);
}

std::string with_prefix(double value, const char* unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  for (; std::abs(value) >= 1000 && prefix + 1 < std::size(kPrefixes); ++prefix) value /= 1000;
  return fmt::format("{:.4g} {}{}", value, kPrefixes[prefix], unit);
}

std::string readable_number(double value, Unit unit) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  switch (unit) {
    case Unit::bytes:
      return format_bytes(std::llround(std::clamp(value, -kMostBytes, kMostBytes)));
    case Unit::seconds:
      return readable_seconds(value);
    case Unit::fraction:
      return fmt::format("{:.2f} %", value * 100);
    case Unit::flop_rate:
      return with_prefix(value, "FLOP/s");
    case Unit::byte_rate:
      return with_prefix(value, "B/s");
    case Unit::none:
      break;
  }
  return fmt::format("{:.6g}", value);
}

// A cell must not break its line.
std::string one_line(std::string text) {
  const auto breaks = [](char c) { return c == '\n' || c == '\t' || c == '\r'; };
  std::replace_if(text.begin(), text.end(), breaks, ' ');
  return visible(text);
}

}  // namespace

std::string readable(const Cell& cell, Unit unit) {
  if (const auto* text = std::get_if<std::string>(&cell)) return one_line(*text);
  if (const auto* number = std::get_if<double>(&cell)) return readable_number(*number, unit);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) {
    return unit == Unit::none ? std::to_string(*whole)
                              : readable_number(static_cast<double>(*whole), unit);
  }
  return kNoValue;
}

// Code points: every byte that does not continue one.
std::size_t text_width(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

namespace {

std::string padded(const std::string& text, std::size_t to, Align align) {
  const std::string space(to - std::min(to, text_width(text)), ' ');
  return align == Align::left ? text + space : space + text;
}

using TextRow = std::vector<std::string>;

// The header and every row as people read them.
std::vector<TextRow> readable_rows(const Table& table) {
  std::vector<TextRow> rows(1);
  for (const Column& column : table.columns) rows[0].push_back(one_line(column.name));
  for (const auto& row : table.rows) {
    TextRow& text = rows.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i) {
      text.push_back(readable(row[i], table.columns[i].unit));
    }
  }
  return rows;
}

std::vector<std::size_t> widths_of(const std::vector<TextRow>& rows) {
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const TextRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], text_width(row[i]));
  }
  return widths;
}

std::string render_table(const Table& table) {
  std::vector<TextRow> rows = readable_rows(table);
  const std::vector<std::size_t> widths = widths_of(rows);
  TextRow rule;
  for (const std::size_t w : widths) rule.emplace_back(w, '-');
  rows.insert(rows.begin() + 1, rule);
  std::string out;
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += (i ? "  " : "") + padded(row[i], widths[i], table.columns[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string render_markdown(const Table& table) {
  std::vector<TextRow> rows = readable_rows(table);
  for (TextRow& row : rows) {
    for (std::string& cell : row) {
      for (std::size_t at = 0; (at = cell.find_first_of("|<", at)) != std::string::npos; at += 2) {
        cell.insert(at, "\\");
      }
    }
  }
  std::vector<std::size_t> widths = widths_of(rows);
  TextRow rule;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    widths[i] = std::max<std::size_t>(widths[i], 3);
    rule.emplace_back(widths[i], '-');
    if (table.columns[i].align == Align::right) rule.back().back() = ':';
  }
  rows.insert(rows.begin() + 1, rule);
  std::string out;
  for (const TextRow& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      out += "| " + padded(row[i], widths[i], table.columns[i].align) + " ";
    }
    out += "|\n";
  }
  return out;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string csv_field(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return csv_field(*text);
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return std::to_string(*whole);
  return "";
}

std::string render_csv(const Table& table) {
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    out += (i ? "," : "") + csv_field(table.columns[i].name);
  }
  out += "\n";
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) out += (i ? "," : "") + csv_field(row[i]);
    out += "\n";
  }
  return out;
}

std::string render_json(const Table& table) {
  std::string out = "[";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    Json object = Json::object();
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      auto& value = object[table.columns[i].name];
      std::visit(
          [&value](const auto& cell) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(cell)>, std::monostate>) {
              value = cell;
            }
          },
          table.rows[r][i]);
    }
    out += (r ? ",\n " : "") + to_text(object);
  }
  return out + "]\n";
}

}  // namespace

Format parse_format(std::string_view text) {
  if (text == "table") return Format::table;
  if (text == "wide") return Format::wide;
  if (text == "md") return Format::md;
  if (text == "csv") return Format::csv;
  if (text == "json") return Format::json;
  throw Error(ErrorCode::usage,
              fmt::format("output format: \"{}\" is not one of table, wide, md, csv, json", text));
}

std::string render(const Table& table, Format format) {
  for (const auto& row : table.rows) {
    ZL_CHECK(row.size() == table.columns.size(), "a table row must have one cell per column");
  }
  switch (format) {
    case Format::table:
    case Format::wide:
      return render_table(table);
    case Format::md:
      return render_markdown(table);
    case Format::csv:
      return render_csv(table);
    case Format::json:
      break;
  }
  return render_json(table);
}

}  // namespace zl
