#include "results/report_html.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "results/report_sections.h"
#include "results/xml.h"

namespace zl {
namespace {

constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --page: #fff; --ink: #1d2129; --faint: #5b6573; --grid: #e1e4e9;
  --head: #f4f5f7; --bad: #b3261e; --link: #1664b0; }
@media (prefers-color-scheme: dark) { :root { --page: #191c21; --ink: #e4e7eb; --faint: #9aa4b2;
  --grid: #343a44; --head: #22262c; --bad: #ff7b6b; --link: #7db8f0; } }
body { background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif;
  margin: 0 auto; max-width: 1080px; padding: 24px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 21px; margin: 44px 0 8px; padding-top: 12px; border-top: 2px solid var(--grid); }
h3 { font-size: 17px; margin: 28px 0 6px; }
h4 { font-size: 15px; margin: 18px 0 4px; }
p { margin: 4px 0 10px; max-width: 75ch; }
a { color: var(--link); }
pre { background: var(--head); font-size: 12.5px; overflow-x: auto; padding: 8px 10px; }
.faint, footer { color: var(--faint); }
nav ul { columns: 2; margin: 8px 0; padding-left: 20px; }
.scroll { overflow-x: auto; margin: 8px 0 16px; }
table { border-collapse: collapse; font-size: 12.5px; font-variant-numeric: tabular-nums; }
caption { position: absolute; clip-path: inset(50%); height: 1px; overflow: hidden; }
th, td { padding: 3px 8px; border-bottom: 1px solid var(--grid); text-align: left;
  vertical-align: top; white-space: nowrap; }
td.long { white-space: normal; min-width: 26ch; }
th { background: var(--head); font-weight: 600; }
.number { text-align: right; }
svg.chart { display: block; width: 100%; min-width: 720px; height: auto; margin: 8px 0; }
svg.hatches { position: absolute; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); paint-order: stroke;
  stroke: var(--page); stroke-width: 3px; }
svg text.faint { fill: var(--faint); font-size: 11px; }
svg text.bad { fill: var(--bad); font-weight: 600; }
svg .grid { stroke: var(--grid); }
svg .edge { stroke: var(--page); }
svg .cut { stroke: var(--page); stroke-width: 3; }
svg .limit { stroke: var(--bad); stroke-width: 2; stroke-dasharray: 6 3; }
svg .bar { stroke: var(--page); stroke-width: 0.5; }
svg .whisker { stroke: var(--ink); stroke-width: 1.5; }
svg .mark { fill: var(--page); stroke: var(--ink); stroke-width: 2; }
@media print { :root { color-scheme: light; --page: #fff; --ink: #000; --faint: #444; --grid: #bbb;
  --head: #eee; --bad: #b3261e; --link: #000; }
  body { max-width: none; padding: 0; font-size: 11px; } nav { display: none; }
  .scroll { overflow: visible; } table { font-size: 8px; } th, td { padding: 2px 4px; }
  th, td, td.long { white-space: normal; min-width: 0; }
  h2, h3, h4, h3 + p, h4 + p { break-after: avoid; }
  .keep, .scroll, tr { break-inside: avoid; }
  svg.chart { min-width: 0; } thead { display: table-header-group; }
  pre { white-space: pre-wrap; font-size: 8px; }
  section.scenario + section.scenario { break-before: page; } }
)css";

// The exact number behind what people read; the shortest text that reads back as the same.
std::string exact(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
  const auto* number = std::get_if<double>(&cell);
  return number != nullptr && std::isfinite(*number) ? fmt::format("{}", *number) : "";
}

std::string cell_html(const Cell& cell, const Column& column) {
  constexpr std::size_t kLong = 40;
  const std::string text = readable(cell, column.unit);
  if (text.starts_with("https://")) {
    return fmt::format("<td><a href=\"{0}\">{0}</a></td>", xml_escaped(text));
  }
  const char* style = column.align == Align::right ? " class=\"number\""
                      : text.size() > kLong        ? " class=\"long\""
                                                   : "";
  const std::string value = exact(cell);
  const std::string shown =
      value.empty() ? xml_escaped(text)
                    : fmt::format("<data value=\"{}\">{}</data>", value, xml_escaped(text));
  return fmt::format("<td{}>{}</td>", style, shown);
}

std::string table_html(const Table& table, const std::string& caption) {
  if (table.columns.empty()) return "";
  std::string out =
      "<div class=\"scroll\"><table>\n<caption>" + xml_escaped(caption) + "</caption>\n<thead><tr>";
  for (const Column& column : table.columns) {
    out += fmt::format("<th scope=\"col\"{}>{}</th>",
                       column.align == Align::right ? " class=\"number\"" : "",
                       xml_escaped(column.name));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) out += cell_html(row[i], table.columns[i]);
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table></div>\n";
}

// xml_escaped() takes control characters away, the ends of lines too.
std::string lines_escaped(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += xml_escaped(line) + "\n";
  return out;
}

// A heading stays on the page of what it is of: text and chart, or else the table.
std::string part_html(const ReportPart& part, const std::string& above,
                      const std::string& caption) {
  const std::string table = table_html(part.table, caption);
  std::string out = "<div class=\"keep\">\n" + above;
  if (!part.heading.empty()) out += "<h4>" + xml_escaped(part.heading) + "</h4>\n";
  if (!part.text.empty()) out += "<p>" + xml_escaped(part.text) + "</p>\n";
  if (!part.code.empty()) out += "<pre>" + lines_escaped(part.code) + "</pre>\n";
  if (part.svg.empty()) {
    constexpr std::size_t kFewRows = 20;
    const bool few = part.table.rows.size() <= kFewRows;
    return out + (few ? table + "</div>\n" : "</div>\n" + table);
  }
  return out + "<div class=\"scroll\">" + part.svg + "</div>\n</div>\n" + table;
}

std::string section_html(const ReportSection& section, const std::string& above) {
  std::string heading = above + "<h3>" + xml_escaped(section.title) + "</h3>\n";
  std::string out;
  for (const ReportPart& part : section.parts) {
    out += part_html(part, heading,
                     part.heading.empty() ? section.title : section.title + ": " + part.heading);
    heading.clear();
  }
  return out;
}

std::string scenario_html(const ReportScenario& scenario, std::size_t number) {
  std::string out = fmt::format("<section class=\"scenario\" id=\"scenario-{}\">\n", number);
  std::string heading = "<h2>" + xml_escaped(scenario.name) + "</h2>\n";
  for (const ReportSection& section : report_sections(scenario)) {
    out += section_html(section, heading);
    heading.clear();
  }
  return out + "</section>\n";
}

std::string contents_html(const Report& report) {
  std::string out = "<nav aria-label=\"Scenarios\"><ul>\n";
  for (std::size_t i = 0; i < report.scenarios.size(); ++i) {
    const ReportScenario& scenario = report.scenarios[i];
    std::string facts;
    for (const auto& [name, value] : scenario.facts) {
      const bool speaks = name == "model" || name == "cluster" || name == "precision";
      const bool brief = name == "ranks" || name == "sequence length" || name == "steps";
      if (speaks) facts += ", " + value;
      if (brief) facts += ", " + name + " " + value;
    }
    out += fmt::format("<li><a href=\"#scenario-{}\">{}</a><span class=\"faint\">{}</span></li>\n",
                       i, xml_escaped(scenario.name), xml_escaped(facts));
  }
  if (!report.published.parts.empty()) {
    out += "<li><a href=\"#published\">" + xml_escaped(report.published.title) + "</a></li>\n";
  }
  return out + "<li><a href=\"#environment\">Environment</a></li>\n</ul></nav>\n";
}

// All before the first section. `about`: below the title, faint.
std::string head_html(const std::string& title, const std::string& about) {
  const std::string name = xml_escaped(title);
  return "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
         "<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<title>" +
         name + "</title>\n<style>" + kStyle + svg_style() + "</style>\n</head>\n<body>\n" +
         svg_hatches() + "<h1>" + name + "</h1>\n<p class=\"faint\">" + xml_escaped(about) +
         "</p>\n";
}

}  // namespace

std::string report_html(const Report& report) {
  std::string out = head_html("zerolab report", report.database + " · " + report.written_at +
                                                    " · " + report.written_by) +
                    contents_html(report) + "<main>\n";
  for (std::size_t i = 0; i < report.scenarios.size(); ++i) {
    out += scenario_html(report.scenarios[i], i);
  }
  if (!report.published.parts.empty()) {
    out += "<section class=\"scenario\" id=\"published\">\n" + section_html(report.published, "") +
           "</section>\n";
  }
  out += "<section id=\"environment\">\n<h2>Environment</h2>\n" +
         table_html(environment_table(report.environments), "Machines and builds of the runs") +
         "</section>\n</main>\n</body>\n</html>\n";
  return out;
}

std::string page_html(const ReportPage& page) {
  std::string out = head_html(page.title, page.about) + "<main>\n";
  for (const ReportSection& section : page.sections) out += section_html(section, "");
  return out + "</main>\n</body>\n</html>\n";
}

}  // namespace zl
