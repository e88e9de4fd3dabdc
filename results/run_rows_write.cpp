// From a RunResult to its rows.
#include <SQLiteCpp/SQLiteCpp.h>

#include <cmath>

#include "results/run_fields.h"
#include "results/run_rows.h"

namespace zl {
namespace {

// Binds the parameters of a statement from left to right. NaN becomes NULL.
class Binder {
 public:
  explicit Binder(SQLite::Statement& statement) : statement_(statement) {}

  Binder& operator<<(const std::string& text) { return statement_.bind(++at_, text), *this; }
  Binder& operator<<(const char* text) { return statement_.bind(++at_, text), *this; }
  Binder& operator<<(int number) { return statement_.bind(++at_, number), *this; }
  Binder& operator<<(std::int64_t number) { return statement_.bind(++at_, number), *this; }
  Binder& operator<<(std::uint64_t bits) { return *this << static_cast<std::int64_t>(bits); }
  Binder& operator<<(double number) { return statement_.bind(++at_, number), *this; }
  Binder& operator<<(Outcome outcome) { return *this << name_of(outcome); }
  template <class Double>
  Binder& operator<<(Seconds<Double> seconds) {
    const double picoseconds = std::round(seconds.value * kPicosecondsPerSecond);
    // Beyond 64 bits (106 days) there is no whole number to store.
    if (!(std::abs(picoseconds) < 9.2e18)) return statement_.bind(++at_), *this;
    return *this << static_cast<std::int64_t>(picoseconds);
  }
  void execute() {
    statement_.exec();
    statement_.reset();
    at_ = 0;
  }

 private:
  SQLite::Statement& statement_;
  int at_ = 0;
};

std::int64_t insert_summary(SQLite::Database& database, const RunOrigin& origin,
                            const RunResult& run) {
  std::string marks;
  visit_columns(run, [&](const char*, const auto&) { marks += ", ?"; });
  SQLite::Statement insert(database,
                           "INSERT INTO runs (scenario, scenario_name, environment, saved_at, " +
                               run_columns() +
                               ") VALUES (?, ?, ?,"
                               " coalesce(nullif(?, ''), strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))" +
                               marks + ")");
  Binder row(insert);
  row << origin.scenario << origin.scenario_name << origin.environment << origin.saved_at;
  visit_columns(run, [&](const char*, const auto& field) { row << field; });
  row.execute();
  return database.getLastInsertRowid();
}

void insert_lists(SQLite::Database& database, std::int64_t id, const RunResult& run) {
  SQLite::Statement collective(database,
                               "INSERT INTO collectives (run, position, collective, group_name,"
                               " axis, link, count, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  Binder collective_row(collective);
  std::int64_t position = 0;
  for (const CollectiveTotals& totals : run.communication) {
    collective_row << id << position++ << totals.collective << totals.group << totals.axis
                   << totals.link << totals.count << totals.bytes;
    collective_row.execute();
  }
  SQLite::Statement warning(database, "INSERT INTO warnings VALUES (?, ?, ?)");
  Binder warning_row(warning);
  position = 0;
  for (const std::string& message : run.warnings) {
    warning_row << id << position++ << message;
    warning_row.execute();
  }
}

void insert_evaluations(SQLite::Database& database, std::int64_t id, const RunResult& run) {
  SQLite::Statement insert(database, "INSERT INTO evaluations VALUES (?, ?, ?, ?)");
  Binder row(insert);
  for (const EvaluationPoint& point : run.evaluations) {
    row << id << point.step << point.loss << point.tokens;
    row.execute();
  }
  if (!run.best_before) return;
  SQLite::Statement before(database, "INSERT INTO best_before VALUES (?, ?, ?, ?)");
  Binder best(before);
  best << id << run.best_before->step << run.best_before->loss << run.best_before->tokens;
  best.execute();
}

void insert_labels(SQLite::Database& database, std::int64_t id, const LabelScores& labels) {
  if (labels.rows == 0) return;
  std::string marks;
  visit_labels(labels, [&](const char*, const auto&) { marks += ", ?"; });
  SQLite::Statement insert(
      database, "INSERT INTO label_scores (run, " + label_columns() + ") VALUES (?" + marks + ")");
  Binder row(insert);
  row << id;
  visit_labels(labels, [&](const char*, const auto& field) { row << field; });
  row.execute();
  SQLite::Statement count(database, "INSERT INTO label_counts VALUES (?, ?, ?, ?, ?, ?)");
  Binder label(count);
  std::int64_t position = 0;
  for (const LabelScores::Of& of : labels.by_label) {
    label << id << position++ << of.name << of.texts << of.told << of.correct;
    label.execute();
  }
}

void insert_stages(SQLite::Database& database, std::int64_t id, const RunResult& run) {
  std::string marks;
  const StageResult none;
  visit_stage(none, [&](const char*, const auto&) { marks += ", ?"; });
  SQLite::Statement stage(database, "INSERT INTO stages (run, stage, " + stage_columns() +
                                        ") VALUES (?, ?" + marks + ")");
  Binder row(stage);
  std::int64_t number = 0;
  for (const StageResult& each : run.stages) {
    row << id << number++;
    visit_stage(each, [&](const char*, const auto& field) { row << field; });
    row.execute();
  }
}

}  // namespace

std::int64_t insert_run(SQLite::Database& database, const RunOrigin& origin, const RunResult& run) {
  const std::int64_t id = insert_summary(database, origin, run);
  SQLite::Statement metric(database, "INSERT INTO step_metrics VALUES (?, ?, ?, ?)");
  Binder metric_row(metric);
  visit_series(run, [&](const char* name, const std::vector<double>& values) {
    for (std::size_t step = 0; step < values.size(); ++step) {
      metric_row << id << name << run.first_step + static_cast<std::int64_t>(step) << values[step];
      metric_row.execute();
    }
  });
  SQLite::Statement peak(database, "INSERT INTO memory_peaks VALUES (?, ?, ?, ?)");
  Binder peak_row(peak);
  visit_peaks(run, [&](const char* space, const TaggedBytes& bytes) {
    for (std::size_t i = 0; i < kMemoryTags; ++i) {
      peak_row << id << space << name_of(static_cast<MemoryTag>(i)) << bytes.tag[i];
      peak_row.execute();
    }
  });
  SQLite::Statement phase(database, "INSERT INTO phases VALUES (?, ?, ?)");
  Binder phase_row(phase);
  visit_phases(run, [&](const char* name, auto seconds) {
    phase_row << id << name << seconds;
    phase_row.execute();
  });
  insert_lists(database, id, run);
  insert_stages(database, id, run);
  insert_evaluations(database, id, run);
  insert_labels(database, id, run.labels);
  return id;
}

std::int64_t find_run(SQLite::Database& database, const RunOrigin& origin, const RunResult& run) {
  std::string same;
  visit_columns(run, [&](const char* name, const auto&) {
    same += " AND " + std::string(name) + " IS ?";  // NULL is NULL
  });
  SQLite::Statement select(database,
                           "SELECT id FROM runs WHERE scenario = ? AND scenario_name = ?"
                           " AND environment = ? AND saved_at = ?" +
                               same);
  Binder row(select);
  row << origin.scenario << origin.scenario_name << origin.environment << origin.saved_at;
  visit_columns(run, [&](const char*, const auto& field) { row << field; });
  return select.executeStep() ? select.getColumn(0).getInt64() : 0;
}

}  // namespace zl
