#include "results/run_rows.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/note_rows.h"
#include "results/run_fields.h"
#include "results/stored_backend.h"

namespace zl {
namespace {

RowName name_of_run(const SQLite::Database& database, const char* table, std::int64_t id) {
  return {database.getFilename(), table, "of run " + std::to_string(id)};
}

// Reads the columns of a row by their names.
class Reader {
 public:
  explicit Reader(CheckedRow row) : row_(std::move(row)) {}

  void read(const char* column, std::string& text) const { text = row_.text(column); }
  void read(const char* column, int& number) const { number = row_.count(column); }
  void read(const char* column, std::int64_t& number) const { number = row_.whole(column); }
  void read(const char* column, std::uint64_t& bits) const { bits = row_.bits(column); }
  void read(const char* column, double& number) const { number = row_.number(column); }
  void read(const char*, Outcome& outcome) const { outcome = read_outcome(row_); }
  void read(const char* column, Seconds<double> seconds) const {
    seconds.value = row_.number(column) / kPicosecondsPerSecond;
  }

 private:
  CheckedRow row_;
};

// The rows of a run in one of its tables.
class RunTable {
 public:
  RunTable(SQLite::Database& database, std::int64_t id, const char* table)
      : database_(database), id_(id), table_(table) {}

  // Calls take(row) for the rows with these columns that `condition` chooses.
  template <class Take>
  void read(const std::string& columns, const std::string& condition, Take&& take) const {
    SQLite::Statement select(
        database_, "SELECT " + columns + " FROM " + table_ + " WHERE run = ? " + condition);
    select.bind(1, id_);
    const Reader row(CheckedRow(select, name_of_run(database_, table_, id_)));
    while (select.executeStep()) take(row);
  }

 private:
  SQLite::Database& database_;
  std::int64_t id_;
  const char* table_;
};

void read_evaluation(const Reader& row, EvaluationPoint& point) {
  row.read("step", point.step);
  row.read("loss", point.loss);
  row.read("tokens", point.tokens);
}

void read_lists(SQLite::Database& database, std::int64_t id, RunResult& run) {
  RunTable(database, id, "collectives")
      .read("collective, group_name, axis, link, count, bytes", "ORDER BY position",
            [&run](const Reader& row) {
              CollectiveTotals& totals = run.communication.emplace_back();
              row.read("collective", totals.collective);
              row.read("group_name", totals.group);
              row.read("axis", totals.axis);
              row.read("link", totals.link);
              row.read("count", totals.count);
              row.read("bytes", totals.bytes);
            });
  RunTable(database, id, "stages")
      .read(stage_columns(), "ORDER BY stage", [&run](const Reader& row) {
        visit_stage(run.stages.emplace_back(),
                    [&row](const char* column, auto&& field) { row.read(column, field); });
      });
  RunTable(database, id, "evaluations")
      .read("step, loss, tokens", "ORDER BY step",
            [&run](const Reader& row) { read_evaluation(row, run.evaluations.emplace_back()); });
  RunTable(database, id, "best_before").read("step, loss, tokens", "", [&run](const Reader& row) {
    read_evaluation(row, run.best_before.emplace());
  });
  RunTable(database, id, "label_scores").read(label_columns(), "", [&run](const Reader& row) {
    visit_labels(run.labels, [&row](const char* column, auto& field) { row.read(column, field); });
  });
  RunTable(database, id, "label_counts")
      .read("name, texts, told, correct", "ORDER BY position", [&run](const Reader& row) {
        LabelScores::Of& of = run.labels.by_label.emplace_back();
        row.read("name", of.name);
        row.read("texts", of.texts);
        row.read("told", of.told);
        row.read("correct", of.correct);
      });
  RunTable(database, id, "warnings")
      .read("message", "ORDER BY position",
            [&run](const Reader& row) { row.read("message", run.warnings.emplace_back()); });
}

// One statement a table, however many names it has.
void read_series(SQLite::Database& database, std::int64_t id, RunResult& run) {
  std::map<std::string, std::vector<double>*, std::less<>> series;
  visit_series(run, [&](const char* name, auto& values) { series[name] = &values; });
  RunTable(database, id, "step_metrics")
      .read("name, value", "ORDER BY name, step", [&series](const Reader& row) {
        std::string name;
        row.read("name", name);
        const auto found = series.find(name);
        if (found != series.end()) row.read("value", found->second->emplace_back());
      });
}

void read_peaks(SQLite::Database& database, std::int64_t id, RunResult& run) {
  std::map<std::pair<std::string, std::string>, std::int64_t*> bytes;
  visit_peaks(run, [&](const char* space, TaggedBytes& peak) {
    for (std::size_t i = 0; i < kMemoryTags; ++i) {
      bytes[{space, name_of(static_cast<MemoryTag>(i))}] = &peak.tag[i];
    }
  });
  RunTable(database, id, "memory_peaks").read("space, tag, bytes", "", [&bytes](const Reader& row) {
    std::string space, tag;
    row.read("space", space);
    row.read("tag", tag);
    const auto found = bytes.find({space, tag});
    if (found != bytes.end()) row.read("bytes", *found->second);
  });
}

void read_phases(SQLite::Database& database, std::int64_t id, RunResult& run) {
  std::map<std::string, double*, std::less<>> phases;
  visit_phases(run, [&](const char* name, Seconds<double> time) { phases[name] = &time.value; });
  RunTable(database, id, "phases").read("name, time_ps", "", [&phases](const Reader& row) {
    std::string name;
    row.read("name", name);
    const auto found = phases.find(name);
    if (found != phases.end()) row.read("time_ps", Seconds<double>{*found->second});
  });
}

std::string eval_data_of(SQLite::Database& database, std::int64_t id) {
  SQLite::Statement select(database,
                           "SELECT CAST(CASE WHEN json_valid(s.json) THEN"
                           " coalesce(s.json ->> '$.run.eval_data', '') ELSE '' END AS TEXT)"
                           " FROM runs r JOIN scenarios s ON s.hash = r.scenario WHERE r.id = ?");
  select.bind(1, id);
  return select.executeStep() ? select.getColumn(0).getString() : "";
}

// What the view takes from the scenario; what its JSON does not say, or not in range, is unknown.
void read_setup(SQLite::Database& database, std::int64_t id, RunResult& run) {
  SQLite::Statement select(database,
                           "SELECT model, cluster, data, sequence_length, micro_batch,"
                           " gradient_accumulation FROM run_table WHERE run = ?");
  select.bind(1, id);
  if (!select.executeStep()) return;
  const auto text = [&](const char* column) { return select.getColumn(column).getString(); };
  const auto count = [&](const char* column) -> std::int64_t {
    constexpr std::int64_t kLargest = 1 << 30;
    const std::int64_t number = select.getColumn(column).getInt64();
    return number > 0 && number <= kLargest ? number : 0;
  };
  RunSetup& setup = run.setup;
  setup = {text("model"),
           text("cluster"),
           setup.software,
           text("data"),
           eval_data_of(database, id),
           count("sequence_length"),
           count("micro_batch"),
           count("gradient_accumulation"),
           setup.tokens_per_step};
  if (setup.tokens_per_step > 0) return;
  double tokens = run.ranks;
  for (const std::int64_t factor :
       {setup.sequence_length, setup.micro_batch, setup.gradient_accumulation}) {
    tokens *= static_cast<double>(factor);
  }
  if (tokens > 0 && tokens < 0x1p62) setup.tokens_per_step = static_cast<std::int64_t>(tokens);
}

bool has_scenario(SQLite::Database& database, std::int64_t id) {
  SQLite::Statement select(database,
                           "SELECT 1 FROM runs r JOIN scenarios s ON s.hash = r.scenario"
                           " WHERE r.id = ?");
  select.bind(1, id);
  return select.executeStep();
}

}  // namespace

RunResult read_run(SQLite::Database& database, std::int64_t id) {
  SQLite::Statement select(database, "SELECT " + run_columns() + " FROM runs WHERE id = ?");
  select.bind(1, id);
  if (!select.executeStep()) require_runs(database, {&id, 1});
  RunResult run;
  run.run_id = id;
  const CheckedRow checked(select, name_of_run(database, "runs", id));
  if (!has_scenario(database, id)) checked.fail("scenario", "the database has no such scenario");
  const Reader row(checked);
  visit_columns(run, [&](const char* column, auto&& field) { row.read(column, field); });
  run.predicted = is_predicting(run.backend);
  read_series(database, id, run);
  read_peaks(database, id, run);
  read_phases(database, id, run);
  read_lists(database, id, run);
  read_setup(database, id, run);
  return run;
}

Outcome read_outcome(const CheckedRow& row) {
  const std::string name = row.text("outcome");
  for (const Outcome outcome : kOutcomes) {
    if (name == name_of(outcome)) return outcome;
  }
  row.fail("outcome", "\"" + shortened(name) + "\" is unknown");
}

}  // namespace zl
