// `zerolab report`: the database as one page.
#include <CLI/CLI.hpp>
#include <memory>

#include "core/base/error.h"
#include "core/base/log.h"
#include "results/report_html.h"
#include "results/report_markdown.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/run_choice.h"
#include "scenarios/report/collect_report.h"

namespace zl::cli {
namespace {

struct ReportOptions {
  std::string database;
  ReportFilter filter;
  std::string runs;  // "3,5,9"
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
  return !options.output.empty() && is_html_page("--output", options.output);
}

int report(const ReportOptions& options) {
  const bool html = wants_html(options);
  const std::string database = DatabaseOptions{options.database, false}.path().string();
  ReportFilter filter = options.filter;
  if (!options.runs.empty()) filter.runs = run_ids(options.runs);
  Store store = Store::open_any_version(database);
  const Report page = collect_report(store, database, filter);
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
  CLI::Option* scenario =
      sub->add_option("--scenario", options->filter.scenario, "Only runs of this scenario");
  CLI::Option* strategy = sub->add_option("--strategy", options->filter.strategies,
                                          "Only these strategies, separated by commas")
                              ->delimiter(',');
  CLI::Option* runs =
      sub->add_option("--runs", options->runs, "Exactly these runs side by side: 3,5,9")
          ->excludes(scenario)
          ->excludes(strategy);
  sub->add_option("--tag", options->filter.tag, "The runs with this tag side by side")
      ->excludes(scenario)
      ->excludes(strategy)
      ->excludes(runs);
  sub->add_option("--output", options->output, "File to write; without, Markdown goes to stdout");
  sub->add_option("-o,--format", options->format,
                  "html or markdown; without, markdown for stdout and .md files");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return report(*options); }; });
}

}  // namespace zl::cli
