// `zerolab report`: the database as one page.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "core/base/log.h"
#include "results/report_html.h"
#include "results/report_markdown.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/report/collect_report.h"

namespace zl::cli {
namespace {

struct ReportOptions {
  std::string database;
  ReportFilter filter;
  std::string output;
  std::string format;
};

bool wants_html(const ReportOptions& options) {
  if (options.format == "html") return true;
  if (options.format == "md" || options.format == "markdown") return false;
  if (!options.format.empty()) {
    throw Error(ErrorCode::usage,
                "--format: \"" + options.format + "\" is not one of html, markdown");
  }
  const std::string ending = std::filesystem::path(options.output).extension().string();
  if (options.output.empty() || ending == ".md") return false;
  if (ending == ".html" || ending == ".htm") return true;
  throw Error(ErrorCode::usage, "--output: \"" + options.output +
                                    "\" ends neither in .html nor in .md; say --format html or "
                                    "--format markdown");
}

int report(const ReportOptions& options) {
  const bool html = wants_html(options);
  const std::string database = DatabaseOptions{options.database, false}.path().string();
  Store store = Store::open(database, Store::Mode::read_only);
  const Report page = collect_report(store, database, options.filter);
  const std::string text = html ? report_html(page) : report_markdown(page);
  if (options.output.empty()) {
    print(text);
    return 0;
  }
  write_file(options.output, text);
  log_info("wrote " + options.output);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand("report", "The stored runs as one HTML or Markdown page");
  const auto options = std::make_shared<ReportOptions>();
  sub->add_option("database,--db", options->database, "Result database (see zerolab paths)");
  sub->add_option("--scenario", options->filter.scenario, "Only runs of this scenario");
  sub->add_option("--strategy", options->filter.strategies,
                  "Only these strategies, separated by commas")
      ->delimiter(',');
  sub->add_option("--output", options->output, "File to write; without, Markdown goes to stdout");
  sub->add_option("-o,--format", options->format,
                  "html or markdown; without, markdown for stdout and .md files");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return report(*options); }; });
}

}  // namespace zl::cli
