// A report as Markdown. Ownership: values. Threads: pure functions.
#pragma once

#include <string>

#include "results/report_data.h"
#include "results/report_sections.h"

namespace zl {

// The sections and tables of report_html, without the charts.
std::string report_markdown(const Report& report);
std::string page_markdown(const ReportPage& page);

}  // namespace zl
