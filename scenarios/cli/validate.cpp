// `zerolab validate`: published runs, or one's own, beside what is predicted of them.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "scenarios/cli/commands.h"
#include "scenarios/cli/options.h"
#include "scenarios/cli/output.h"
#include "scenarios/cli/validate_meshes.h"
#include "scenarios/published/validate_tables.h"
#include "scenarios/report/published_section.h"

namespace zl::cli {
namespace {

struct ValidateOptions {
  std::string file, software;
  bool meshes = false;
  DatabaseOptions database;
  std::string format = "table";
};

Json errors_json(const Errors& errors) {
  return {{"mape", errors.mape},
          {"bias", errors.bias},
          {"p95", errors.p95},
          {"inside_bar", errors.inside}};
}

Json accuracy_json(const Accuracy& accuracy) {
  Json worst = Json::array();
  for (const Judged* each : accuracy.worst) worst.push_back(each->run->id);
  return {{"source", accuracy.source.empty() ? Json() : Json(accuracy.source)},
          {"software", accuracy.software.empty() ? Json() : Json(accuracy.software)},
          {"gpu", accuracy.gpu.empty() ? Json() : Json(accuracy.gpu)},
          {"kind", name_of(accuracy.kind)},
          {"runs", accuracy.rows},
          {"mape", accuracy.mape},
          {"bias", accuracy.bias},
          {"p95", accuracy.p95},
          {"rank_correlation", accuracy.rows < 3 ? Json() : Json(accuracy.rank_correlation)},
          {"inside_bar", accuracy.inside},
          {"left_out", accuracy.left_out ? errors_json(*accuracy.left_out) : Json()},
          {"worst", worst}};
}

// `unit`: "seconds" or "bytes".
Json judged_json(const Judged& each, const std::string& unit) {
  Json run = {{"id", each.run->id},
              {"source", each.run->source},
              {"link", each.run->link.empty() ? Json() : Json(each.run->link)},
              {"software", each.run->software},
              {"gpu", each.run->gpu},
              {"kind", name_of(each.run->kind)}};
  if (!each.is_predicted()) {
    run["why_not"] = each.why_not;
    return run;
  }
  run.update({{"measured_" + unit, each.measured},
              {"predicted_" + unit, each.predicted},
              {"low_" + unit, each.low},
              {"high_" + unit, each.high},
              {"error", each.error()},
              {"left_out_" + unit, each.left_out},
              {"every_measured_" + unit, each.every},
              {"inside_bar", each.is_inside()}});
  return run;
}

Json validation_json(const std::vector<Judged>& judged, const std::string& unit) {
  Json all = {{"all", Json::array()},
              {"by_software", Json::array()},
              {"by_source", Json::array()},
              {"not_predicted", Json::array()},
              {"runs", Json::array()}};
  for (const TimeKind kind : {TimeKind::measured, TimeKind::composed}) {
    const Accuracy each = accuracy_of_kind(judged, kind);
    if (each.rows > 0) all["all"].push_back(accuracy_json(each));
  }
  for (const Accuracy& each : accuracy_by_software(judged)) {
    all["by_software"].push_back(accuracy_json(each));
  }
  for (const Accuracy& each : accuracy_by_source(judged)) {
    all["by_source"].push_back(accuracy_json(each));
  }
  for (const auto& [why, count] : reasons(judged)) {
    all["not_predicted"].push_back({{"why", why}, {"runs", count}});
  }
  for (const Judged& each : judged) all["runs"].push_back(judged_json(each, unit));
  return all;
}

std::string validation_text(const std::vector<Judged>& judged, Format format, Unit unit) {
  const std::vector<Accuracy> by_software = accuracy_by_software(judged);
  if (format == Format::csv)
    return render(accuracy_table(accuracy_by_source(judged), true), format);
  const Table without = not_predicted_table(judged);
  std::string text = headline(judged) + "\n" + render(accuracy_table(by_software, false), format) +
                     "\n" + render(accuracy_table(accuracy_by_source(judged), true), format) +
                     "\nThe worst five of each software and GPU:\n" +
                     render(worst_table(by_software, unit), format);
  if (!without.rows.empty()) text += "\n" + render(without, format);
  return text;
}

// Times, then bytes.
std::string both_text(const std::vector<Judged>& times, const std::vector<Judged>& bytes,
                      Format format) {
  if (format == Format::json) {
    Json all = validation_json(times, "seconds");
    all["memory"] = validation_json(bytes, "bytes");
    return pretty(all);
  }
  std::string text = validation_text(times, format, Unit::seconds);
  if (bytes.empty() || format == Format::csv) return text;
  return text + "\nBytes of a device at its peak:\n" + validation_text(bytes, format, Unit::bytes);
}

int validate_meshes(std::span<const PublishedRun> runs, const std::string& software,
                    Format format) {
  const JudgedMeshes judged = judged_meshes(runs, software);
  if (format == Format::json) {
    print(pretty({{"schema", 1},
                  {"meshes", Json::parse(render(judged.meshes, format))},
                  {"not_judged", Json::parse(render(judged.not_judged, format))}}));
    return 0;
  }
  std::string text = fitted_text(judged.meshes, format);
  const bool has_more = format != Format::csv && !judged.not_judged.rows.empty();
  if (has_more) text += "\n" + render(judged.not_judged, format);
  print(text);
  return 0;
}

int validate(const ValidateOptions& options) {
  const Format format = parse_format(options.format);
  std::vector<PublishedRun> runs;
  if (!options.file.empty()) {
    runs = read_published(read_file(options.file), options.file);
  } else {
    runs = options.meshes ? catalog_meshes() : catalog_published();
  }
  if (options.meshes) return validate_meshes(runs, options.software, format);
  const auto memory = std::stable_partition(
      runs.begin(), runs.end(), [](const PublishedRun& run) { return !is_memory(run); });
  const std::vector<Judged> times = judge_published({runs.begin(), memory}, options.software);
  const std::vector<Judged> bytes = judge_published_memory({memory, runs.end()}, options.software);
  print(both_text(times, bytes, format));
  // Under another software than theirs they say nothing of how true its predictions are.
  if (!options.database.off && options.software.empty()) {
    Store store = Store::open(options.database.path(), Store::Mode::read_write);
    store.keep_published(as_stored(times, false));
    store.keep_published(as_stored(bytes, true));
  }
  return 0;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  CLI::App* sub = app.add_subcommand(
      "validate", "Published runs of other software beside what is predicted of them");
  const auto options = std::make_shared<ValidateOptions>();
  sub->add_option("--file", options->file,
                  "CSV of runs with the columns of scenarios/catalog/published");
  sub->add_option("--software", options->software,
                  "Predict all of them under this software; else under their own");
  sub->add_flag("--meshes", options->meshes,
                "What the planner finds for the runs on 64 GPUs and more, beside what was chosen");
  CLI::Option* file = sub->add_option("--db", options->database.file,
                                      "Database that keeps what was predicted, for reports");
  sub->add_flag("--no-db", options->database.off, "Do not store it")->excludes(file);
  add_format(*sub, options->format, "table, md, csv or json");
  add_verbosity(*sub);
  sub->callback([options, &action] { action = [options] { return validate(*options); }; });
}

}  // namespace zl::cli
