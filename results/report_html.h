// A report as one page for a browser. Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "results/report_data.h"
#include "results/report_sections.h"

namespace zl {

// Self-contained XHTML: inline SVG and style, no script, light and dark, readable on paper. Exact
// values are in <data value="...">.
std::string report_html(const Report& report);
std::string page_html(const ReportPage& page);

}  // namespace zl
