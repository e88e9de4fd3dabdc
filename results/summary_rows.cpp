#include "results/summary_rows.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <string>

#include "core/base/log.h"
#include "results/checked_row.h"
#include "results/note_rows.h"
#include "results/run_rows.h"
#include "results/stored_backend.h"

namespace zl {
namespace {

RunSummary read_summary(const CheckedRow& row) {
  RunSummary run;
  run.id = row.whole("run");
  run.saved_at = row.text("saved_at");
  run.scenario_hash = row.text("scenario_hash");
  run.scenario_name = row.text("scenario");
  run.strategy = row.text("strategy");
  run.backend = row.text("backend");
  run.predicted = is_predicting(run.backend);
  run.outcome = read_outcome(row);
  run.message = row.text("message");
  run.model = row.text("model");
  run.cluster = row.text("cluster");
  run.software = row.text("software");
  run.data = row.text("data");
  run.precision = row.text("precision");
  run.first_step = row.whole("first_step");
  run.planned_steps = row.whole("planned_steps");
  run.sequence_length = row.whole("sequence_length");
  run.micro_batch = row.whole("micro_batch");
  run.gradient_accumulation = row.whole("gradient_accumulation");
  run.ranks = row.count("ranks");
  run.tokens = row.whole("tokens");
  run.steps = row.whole("steps");
  run.final_loss = row.number("final_loss");
  run.best_validation_loss = row.number("best_validation_loss");
  run.learning_rate = row.number("learning_rate");
  run.tokens_per_second = row.number("tokens_per_second");
  run.step_time_median = row.number("step_time_median_ps") / 1e12;
  run.peak_device_bytes = row.whole("peak_device_bytes");
  run.wire_bytes_per_step = row.whole("wire_bytes_per_step");
  run.note = row.text("note");
  run.tags = row.text("tags");
  return run;
}

void pass_over(const Error& error) { log_warning(std::string("passed over: ") + error.what()); }

// `run` 0: all that the filter takes.
void add_summaries(SQLite::Database& database, const RunFilter& filter, std::int64_t run,
                   std::vector<RunSummary>& runs) {
  SQLite::Statement select(
      database,
      "SELECT *, (SELECT tokens_per_step FROM runs WHERE id = run) AS tokens,"
      " (SELECT min(loss) FROM evaluations e WHERE e.run = t.run) AS best_validation_loss,"
      " (SELECT max(value) FROM step_metrics m WHERE m.run = t.run AND m.name = 'learning_rate')"
      " AS learning_rate"
      " FROM run_table t WHERE ?1 IN ('', scenario_hash)"
      " AND ?2 IN ('', scenario) AND ?3 IN ('', strategy)"
      " AND ?4 IN ('', backend) AND ?5 IN (0, run)"
      " AND (?6 = '' OR instr(' ' || tags || ' ', ' ' || ?6 || ' ') > 0)"
      " AND ?7 <= saved_at AND (?8 = '' OR substr(saved_at, 1, length(?8)) <= ?8)"
      " ORDER BY run DESC");
  select.bind(1, filter.scenario_hash);
  select.bind(2, filter.scenario_name);
  select.bind(3, filter.strategy);
  select.bind(4, filter.backend);
  select.bind(5, run);
  select.bind(6, filter.tag);
  select.bind(7, filter.since);
  select.bind(8, filter.until);
  const auto wanted = [&] { return filter.limit <= 0 || std::ssize(runs) < filter.limit; };
  while (wanted() && select.executeStep()) {
    const std::string id = std::to_string(select.getColumn("run").getInt64());
    try {
      runs.push_back(read_summary({select, {database.getFilename(), "runs", id}}));
    } catch (const Error& error) {
      pass_over(error);
    }
  }
}

// One run, which may have numbers that SQLite cannot add up.
void add_one(SQLite::Database& database, const RunFilter& filter, std::int64_t id,
             std::vector<RunSummary>& runs) {
  try {
    add_summaries(database, filter, id, runs);
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() != SQLITE_ERROR) throw;
    const RowName name{database.getFilename(), "memory_peaks", "of run " + std::to_string(id)};
    pass_over(damaged_row(name, "bytes", error.what()));
  }
}

// Run by run: where one has numbers that SQLite cannot add up, no list comes about.
void add_one_by_one(SQLite::Database& database, const RunFilter& filter,
                    std::vector<RunSummary>& runs) {
  SQLite::Statement ids(database, "SELECT id FROM runs ORDER BY id DESC");
  while (ids.executeStep()) add_one(database, filter, ids.getColumn(0).getInt64(), runs);
}

// Those of no scenario are in no list; damage alone makes them.
void say_orphans(SQLite::Database& database) {
  SQLite::Statement ids(database,
                        "SELECT id FROM runs WHERE scenario NOT IN (SELECT hash FROM scenarios)");
  while (ids.executeStep()) {
    const RowName name{database.getFilename(), "runs", ids.getColumn(0).getString()};
    pass_over(damaged_row(name, "scenario", "the database has no such scenario"));
  }
}

Prediction read_prediction(const CheckedRow& row) {
  const auto seconds = [&row](const char* column) { return row.number(column) / 1e12; };
  const auto share = [&row](const char* column) { return row.number(column) / 100; };
  Prediction out;
  out.scenario_hash = row.text("scenario_hash");
  out.scenario_name = row.text("scenario");
  out.strategy = row.text("strategy");
  out.backend = row.text("measured_backend");
  out.measured_run = row.whole("measured_run");
  out.simulated_run = row.whole("simulated_run");
  out.measured_step_time = seconds("measured_step_time_ps");
  out.simulated_step_time = seconds("simulated_step_time_ps");
  out.simulated_low = seconds("step_time_low_ps");
  out.simulated_high = seconds("step_time_high_ps");
  out.step_time_error = share("step_time_error_percent");
  out.peak_device_error = share("peak_device_error_percent");
  out.wire_bytes_error = share("wire_bytes_error_percent");
  return out;
}

}  // namespace

std::vector<RunSummary> read_summaries(SQLite::Database& database, const RunFilter& filter) {
  std::vector<RunSummary> runs;
  if (!filter.ids.empty()) {
    require_runs(database, filter.ids);
    for (const std::int64_t id : filter.ids) add_one(database, filter, id, runs);
    return runs;
  }
  try {
    add_summaries(database, filter, 0, runs);
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() != SQLITE_ERROR) throw;
    runs.clear();
    add_one_by_one(database, filter, runs);
  }
  say_orphans(database);
  return runs;
}

std::vector<Prediction> read_predictions(SQLite::Database& database) {
  SQLite::Statement select(database,
                           "SELECT v.*, r.step_time_low_ps, r.step_time_high_ps"
                           " FROM sim_vs_measured v JOIN runs r ON r.id = v.simulated_run"
                           " ORDER BY v.scenario, v.scenario_hash, v.strategy, measured_backend");
  std::vector<Prediction> rows;
  while (select.executeStep()) {
    const std::string run = "of run " + select.getColumn("measured_run").getString();
    rows.push_back(read_prediction({select, {database.getFilename(), "sim_vs_measured", run}}));
  }
  return rows;
}

}  // namespace zl
