#include "results/fitted.h"

#include <algorithm>

#include "core/base/text.h"

namespace zl {
namespace {

constexpr std::size_t kGap = 2;  // between columns

std::size_t widest_of(const Table& table, std::size_t column) {
  const Column& described = table.columns[column];
  std::size_t widest = text_width(described.name);
  for (const auto& row : table.rows) {
    widest = std::max(widest, text_width(readable(row[column], described.unit)));
  }
  return widest;
}

std::string beginning_of(const std::string& text, std::size_t width) {
  if (text_width(text) <= width) return text;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i + 1 < width; ++i) {
    bytes += std::max<std::size_t>(1, utf8_length(std::string_view(text).substr(bytes)));
  }
  return text.substr(0, bytes) + "\u2026";
}

void cut_column(Table& table, std::size_t column, std::size_t width) {
  for (auto& row : table.rows) {
    if (auto* text = std::get_if<std::string>(&row[column])) *text = beginning_of(*text, width);
  }
}

}  // namespace

Fitted fitted(Table table, std::size_t width) {
  if (width == 0) return {std::move(table)};
  std::vector<std::size_t> widths;
  std::size_t used = 0;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const std::size_t widest = widest_of(table, i);
    const std::size_t least = table.columns[i].is_prose ? std::min(widest, kLeastProse) : widest;
    const std::size_t gap = i > 0 ? kGap : 0;
    if (used + gap + least > width && i > 0) break;
    used += gap + least;
    widths.push_back(widest);
  }
  Fitted shown{std::move(table)};
  Table& kept = shown.table;
  for (std::size_t i = widths.size(); i < kept.columns.size(); ++i) {
    shown.left_out.push_back(kept.columns[i].name);
  }
  kept.columns.resize(widths.size());
  for (auto& row : kept.rows) row.resize(widths.size());
  for (std::size_t i = 0; i < widths.size(); ++i) {
    if (!kept.columns[i].is_prose) continue;
    const std::size_t room = std::min(widths[i], kLeastProse) + (width - std::min(width, used));
    if (widths[i] <= room) continue;
    cut_column(kept, i, room);
    shown.cut.push_back(kept.columns[i].name);
  }
  return shown;
}

}  // namespace zl
