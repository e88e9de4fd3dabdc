#include "results/report_markdown.h"

#include <fmt/format.h>

#include "results/report_sections.h"

namespace zl {
namespace {

// Outside of tables: what would be markup is not.
std::string markdown_escaped(const std::string& text) {
  std::string out;
  for (const char c : readable(text, Unit::none)) {
    if (std::string_view("\\`*_[]<>#|").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string table_markdown(const Table& table) {
  return table.columns.empty() ? "" : render(table, Format::md) + "\n";
}

std::string section_markdown(const ReportSection& section) {
  std::string out = "### " + markdown_escaped(section.title) + "\n\n";
  for (const ReportPart& part : section.parts) {
    if (!part.heading.empty()) out += "#### " + markdown_escaped(part.heading) + "\n\n";
    if (!part.text.empty()) out += markdown_escaped(part.text) + "\n\n";
    if (!part.code.empty())
      out += "```\n" + part.code + (part.code.back() == '\n' ? "" : "\n") + "```\n\n";
    out += table_markdown(part.table);
  }
  return out;
}

}  // namespace

std::string report_markdown(const Report& report) {
  std::string out =
      fmt::format("# zerolab report\n\n{} · {} · {}\n\n", markdown_escaped(report.database),
                  report.written_at, markdown_escaped(report.written_by));
  for (const ReportScenario& scenario : report.scenarios) {
    out += "## " + markdown_escaped(scenario.name) + "\n\n";
    for (const ReportSection& section : report_sections(scenario)) {
      out += section_markdown(section);
    }
  }
  if (!report.published.parts.empty()) out += section_markdown(report.published);
  return out + "## Environment\n\n" + render(environment_table(report.environments), Format::md);
}

std::string page_markdown(const ReportPage& page) {
  std::string out =
      "# " + markdown_escaped(page.title) + "\n\n" + markdown_escaped(page.about) + "\n\n";
  for (const ReportSection& section : page.sections) out += section_markdown(section);
  return out;
}

}  // namespace zl
