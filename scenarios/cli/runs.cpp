// `zerolab runs`: the stored runs: list, show, tag, note, delete, export, import.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "results/stored_tables.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/run_choice.h"

namespace zl::cli {
namespace {

struct RunsOptions {
  std::string database;
  RunFilter filter;
  std::string on;    // a day: since and until
  std::string runs;  // "3,5,9"
  std::vector<std::string> words;
  std::string format = "table";
  bool clear = false;
};

std::filesystem::path database_of(const RunsOptions& options) {
  return DatabaseOptions{options.database, false}.path();
}

Store store_to_read(const RunsOptions& options) {
  return Store::open_any_version(database_of(options));
}
Store store_to_write(const RunsOptions& options) {
  const std::filesystem::path path = database_of(options);
  Store::open_any_version(path);  // what is not there is not made
  return Store::open(path, Store::Mode::read_write);
}

RunFilter chosen_filter(const RunsOptions& options) {
  RunFilter filter = options.filter;
  if (!options.on.empty()) filter.since = filter.until = options.on;
  filter.since = moment(filter.since, options.on.empty() ? "--since" : "--date");
  filter.until = moment(filter.until, options.on.empty() ? "--until" : "--date");
  if (!options.runs.empty()) filter.ids = run_ids(options.runs);
  return filter;
}

int list_runs(const RunsOptions& options) {
  const Format format = parse_format(options.format);
  const std::vector<RunSummary> runs = store_to_read(options).list(chosen_filter(options));
  if (runs.empty()) log_info("no run is stored that is so; `zerolab runs` lists all");
  const bool people = format == Format::table || format == Format::md;
  print(render(people ? stored_runs_table(runs) : stored_runs_flat_table(runs), format));
  return 0;
}

Json stored_run_json(Store& store, const RunSummary& run) {
  RunResult result = store.load(run.id);
  Json object = Json::parse(
      run_json(run.scenario_name, run.backend, store.environment(run.id), {&result, 1}));
  object["run"] = {{"id", run.id},
                   {"saved_at", run.saved_at},
                   {"scenario_hash", run.scenario_hash},
                   {"tags", run.tags},
                   {"note", run.note}};
  object["configuration"] =
      parse_json(store.scenario_json(run.scenario_hash), "the stored scenario");
  return object;
}

int show_runs(const RunsOptions& options) {
  const Format format = parse_format(options.format);
  Store store = store_to_read(options);
  const std::vector<RunSummary> runs = store.list({.ids = run_ids(options.runs)});
  if (format == Format::json) {
    Json all = Json::array();
    for (const RunSummary& run : runs) all.push_back(stored_run_json(store, run));
    print(pretty(all.size() == 1 ? all[0] : all));
    return 0;
  }
  std::string text;
  for (const RunSummary& run : runs) {
    if (!text.empty()) text += "\n";
    text += render(stored_run_table(run, store.load(run.id), store.environment(run.id)), format);
  }
  print(text);
  return 0;
}

std::string run_names(const std::vector<std::int64_t>& ids) {
  return fmt::format("{} {}", ids.size() == 1 ? "run" : "runs", fmt::join(ids, ", "));
}

std::string given_tags(const RunsOptions& options) {
  for (const std::string& tag : options.words) require_name(tag, "tag");
  return join(options.words, " ");
}

int tag_runs(const RunsOptions& options) {
  const auto ids = run_ids(options.runs);
  store_to_write(options).tag(ids, given_tags(options));
  log_info(run_names(ids) + ": tagged " + join(options.words, ", "));
  return 0;
}

int untag_runs(const RunsOptions& options) {
  const auto ids = run_ids(options.runs);
  store_to_write(options).untag(ids, given_tags(options));
  log_info(run_names(ids) + ": no longer tagged " + join(options.words, ", "));
  return 0;
}

int note_runs(const RunsOptions& options) {
  if (options.clear == !options.words.empty()) {
    throw Error(ErrorCode::usage, "note: say the text of the note, or --clear");
  }
  const auto ids = run_ids(options.runs);
  store_to_write(options).note(ids, join(options.words, " "));
  log_info(run_names(ids) + (options.clear ? ": note removed" : ": noted"));
  return 0;
}

int delete_runs(const RunsOptions& options) {
  const auto ids = run_ids(join(options.words, ","));
  store_to_write(options).remove(ids);
  log_info("deleted " + run_names(ids));
  return 0;
}

int export_runs(const RunsOptions& options) {
  Store from = store_to_read(options);
  Store chosen = Store::in_memory();
  const Store::Merged merged = chosen.merge(from, chosen_filter(options));
  if (merged.added == 0) {
    throw Error(ErrorCode::invalid, database_of(options).string() +
                                        ": no run to export; `zerolab runs` lists what is stored");
  }
  chosen.write_copy(options.words.front());
  log_info(fmt::format("wrote {} runs to {}; `zerolab runs import` reads it", merged.added,
                       options.words.front()));
  return 0;
}

int import_runs(const RunsOptions& options) {
  std::vector<Store> sources;  // all are read before any is taken
  for (const std::string& file : options.words) sources.push_back(Store::open_copy(file));
  Store store = Store::open(database_of(options), Store::Mode::read_write);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Store::Merged merged = store.merge(sources[i]);
    log_info(fmt::format(
        "{}: {} runs added, {} were here already{}", options.words[i], merged.added, merged.present,
        merged.passed_over > 0 ? fmt::format(", {} passed over", merged.passed_over) : ""));
  }
  return 0;
}

using Options = std::shared_ptr<RunsOptions>;

void add_filters(CLI::App& app, RunsOptions& options) {
  RunFilter& filter = options.filter;
  app.add_option("--scenario", filter.scenario_name, "Only of this scenario");
  app.add_option("--strategy", filter.strategy, "Only of this strategy");
  app.add_option("--backend", filter.backend, "Only of this backend: cpu, cuda or sim");
  app.add_option("--tag", filter.tag, "Only with this tag");
  CLI::Option* since = app.add_option("--since", filter.since,
                                      "Saved then or later (UTC): 2026-11-22, or with T13:46");
  CLI::Option* until = app.add_option("--until", filter.until, "Saved then or before");
  app.add_option("--date", options.on, "Saved on this day, or in this month: 2026-11")
      ->excludes(since)
      ->excludes(until);
}

CLI::App* add_one(CLI::App& runs, Action& action, const char* name, const char* what,
                  int (*work)(const RunsOptions&), const Options& options) {
  CLI::App* sub = runs.add_subcommand(name, what);
  sub->add_option("--db", options->database, "Result database (see zerolab paths)");
  add_verbosity(*sub);
  sub->callback([options, work, &action] { action = [options, work] { return work(*options); }; });
  return sub;
}

Options new_options() { return std::make_shared<RunsOptions>(); }

constexpr const char* kRuns = "Ids of stored runs: 12, or 3,5,9";

void add_words(CLI::App& runs, Action& action, const char* name, const char* what,
               int (*work)(const RunsOptions&), const char* words) {
  const Options options = new_options();
  CLI::App* sub = add_one(runs, action, name, what, work, options);
  sub->add_option("runs", options->runs, kRuns)->required();
  CLI::Option* given = sub->add_option("words", options->words, words);
  if (work == note_runs) {
    sub->add_flag("--clear", options->clear, "Remove the note");
  } else {
    given->required()->delimiter(',');
  }
}

void add_show_of_runs(CLI::App& runs, Action& action) {
  const Options options = new_options();
  CLI::App* sub =
      add_one(runs, action, "show", "What a run was, and what came of it", show_runs, options);
  sub->add_option("runs", options->runs, kRuns)->required();
  add_format(*sub, options->format, "table, md, csv or json");
}

void add_list_of_runs(CLI::App& sub, const Options& options) {
  add_filters(sub, *options);
  sub.add_option("--limit", options->filter.limit, "At most so many, the newest")
      ->check(CLI::Range(std::int64_t{1}, kMaxCount));
  add_format(sub, options->format, "table, md, csv or json");
}

void add_files(CLI::App& runs, Action& action) {
  const Options to = new_options(), from = new_options();
  CLI::App* sub =
      add_one(runs, action, "export", "Write runs as a database of their own", export_runs, to);
  sub->add_option("file", to->words, "File to write")->required()->expected(1);
  sub->add_option("--runs", to->runs, kRuns);
  add_filters(*sub, *to);
  sub = add_one(runs, action, "import",
                "Add the runs of other databases; what is here already is not added again",
                import_runs, from);
  sub->add_option("files", from->words, "Databases: of other machines, or what export wrote")
      ->required();
}

}  // namespace

void add_runs(CLI::App& app, Action& action) {
  CLI::App* runs =
      app.add_subcommand("runs", "List the stored runs; tag, note, delete, export, import them");
  runs->require_subcommand(0, 1);
  const Options options = new_options();
  runs->add_option("--db", options->database, "Result database (see zerolab paths)");
  add_list_of_runs(*runs, options);
  add_verbosity(*runs);
  add_list_of_runs(
      *add_one(*runs, action, "list", "The same as `zerolab runs`", list_runs, options), options);
  add_show_of_runs(*runs, action);
  add_words(*runs, action, "tag", "Add tags to runs", tag_runs, "Tags: words to find them by");
  add_words(*runs, action, "untag", "Take tags from runs", untag_runs, "Tags to take away");
  add_words(*runs, action, "note", "Write a note beside runs", note_runs, "The text");
  const Options gone = new_options();
  add_one(*runs, action, "delete", "Delete runs and all that is stored of them", delete_runs, gone)
      ->add_option("runs", gone->words, kRuns)
      ->required();
  add_files(*runs, action);
  runs->callback([runs, options, &action] {
    if (runs->get_subcommands().empty()) action = [options] { return list_runs(*options); };
  });
}

}  // namespace zl::cli
