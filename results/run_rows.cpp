#include "results/run_rows.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "results/checked_row.h"
#include "results/stored_backend.h"

namespace zl {
namespace {

constexpr double kPicosecondsPerSecond = 1e12;

RowName name_of_run(const SQLite::Database& database, const char* table, std::int64_t id) {
  return {database.getFilename(), table, "of run " + std::to_string(id)};
}

// A field in seconds whose column is whole picoseconds.
template <class Double>
struct Seconds {
  Double& value;
};
template <class Double>
Seconds(Double&) -> Seconds<Double>;

// Visits (column, field) of the table runs; Run is RunResult or const RunResult.
template <class Run, class Visit>
void visit_columns(Run& run, Visit&& visit) {
  visit("strategy", run.strategy);
  visit("backend", run.backend);
  visit("precision", run.precision);
  visit("outcome", run.outcome);
  visit("message", run.message);
  visit("ranks", run.ranks);
  visit("steps", run.steps);
  visit("first_step", run.first_step);
  visit("skipped_steps", run.skipped_steps);
  visit("tokens_per_second", run.tokens_per_second);
  visit("step_time_median_ps", Seconds{run.step_time.median});
  visit("step_time_min_ps", Seconds{run.step_time.min});
  visit("step_time_max_ps", Seconds{run.step_time.max});
  visit("step_time_low_ps", Seconds{run.step_time_low});
  visit("step_time_high_ps", Seconds{run.step_time_high});
  visit("model_flops_per_step", run.model_flops_per_step);
  visit("mfu", run.mfu);
  visit("mfu_convention", run.mfu_convention);
  visit("reserved_device_bytes", run.reserved_device);
  visit("reserved_host_bytes", run.reserved_host);
  visit("wire_bytes_per_step", run.wire_bytes_per_step);
  visit("op_count", run.op_count);
  visit("op_sequence_hash", run.op_sequence_hash);
}

template <class Run, class Visit>
void visit_series(Run& run, Visit&& visit) {  // table step_metrics
  visit("loss", run.loss);
  visit("grad_norm", run.grad_norm);
  visit("learning_rate", run.learning_rate);
  visit("step_seconds", run.step_seconds);
  visit("loss_scale", run.loss_scale);
}

template <class Run, class Visit>
void visit_peaks(Run& run, Visit&& visit) {  // table memory_peaks
  visit("device", run.peak_device);
  visit("host", run.peak_host);
  visit("nvme", run.peak_nvme);
}

template <class Run, class Visit>
void visit_phases(Run& run, Visit&& visit) {  // table phases
  visit("compute", Seconds{run.time.compute});
  visit("exposed_communication", Seconds{run.time.exposed_communication});
  visit("offload_stall", Seconds{run.time.offload_stall});
  visit("bubble", Seconds{run.time.bubble});
  visit("optimizer", Seconds{run.time.optimizer});
}

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

// "strategy, backend, ..." of the table runs.
std::string run_columns() {
  std::string names;
  const RunResult run;
  visit_columns(run, [&](const char* name, const auto&) {
    names += (names.empty() ? "" : ", ") + std::string(name);
  });
  return names;
}

std::int64_t insert_summary(SQLite::Database& database, const std::string& scenario,
                            std::int64_t environment, const RunResult& run) {
  std::string marks = "?, ?";
  visit_columns(run, [&](const char*, const auto&) { marks += ", ?"; });
  SQLite::Statement insert(database, "INSERT INTO runs (scenario, environment, " + run_columns() +
                                         ") VALUES (" + marks + ")");
  Binder row(insert);
  row << scenario << environment;
  visit_columns(run, [&](const char*, const auto& field) { row << field; });
  row.execute();
  return database.getLastInsertRowid();
}

void insert_lists(SQLite::Database& database, std::int64_t id, const RunResult& run) {
  SQLite::Statement collective(database, "INSERT INTO collectives VALUES (?, ?, ?, ?, ?, ?, ?)");
  Binder collective_row(collective);
  std::int64_t position = 0;
  for (const CollectiveTotals& totals : run.communication) {
    collective_row << id << position++ << totals.collective << totals.group << totals.link
                   << totals.count << totals.bytes;
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

void read_lists(SQLite::Database& database, std::int64_t id, RunResult& run) {
  RunTable(database, id, "collectives")
      .read("collective, group_name, link, count, bytes", "ORDER BY position",
            [&run](const Reader& row) {
              CollectiveTotals& totals = run.communication.emplace_back();
              row.read("collective", totals.collective);
              row.read("group_name", totals.group);
              row.read("link", totals.link);
              row.read("count", totals.count);
              row.read("bytes", totals.bytes);
            });
  RunTable(database, id, "warnings")
      .read("message", "ORDER BY position",
            [&run](const Reader& row) { row.read("message", run.warnings.emplace_back()); });
}

void read_series(SQLite::Database& database, std::int64_t id, RunResult& run) {
  const RunTable table(database, id, "step_metrics");
  visit_series(run, [&](const char* name, std::vector<double>& values) {
    table.read("value", "AND name = '" + std::string(name) + "' ORDER BY step",
               [&values](const Reader& row) { row.read("value", values.emplace_back()); });
  });
}

void read_peaks(SQLite::Database& database, std::int64_t id, RunResult& run) {
  const RunTable table(database, id, "memory_peaks");
  visit_peaks(run, [&](const char* space, TaggedBytes& peak) {
    for (std::size_t i = 0; i < kMemoryTags; ++i) {
      table.read("bytes",
                 std::string("AND space = '") + space + "' AND tag = '" +
                     name_of(static_cast<MemoryTag>(i)) + "'",
                 [&](const Reader& row) { row.read("bytes", peak.tag[i]); });
    }
  });
}

void read_phases(SQLite::Database& database, std::int64_t id, RunResult& run) {
  const RunTable table(database, id, "phases");
  visit_phases(run, [&](const char* name, Seconds<double> seconds) {
    table.read("time_ps", "AND name = '" + std::string(name) + "'",
               [&](const Reader& row) { row.read("time_ps", seconds); });
  });
}

}  // namespace

std::int64_t insert_run(SQLite::Database& database, const std::string& scenario,
                        std::int64_t environment, const RunResult& run) {
  const std::int64_t id = insert_summary(database, scenario, environment, run);
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
  return id;
}

RunResult read_run(SQLite::Database& database, std::int64_t id) {
  SQLite::Statement select(database, "SELECT " + run_columns() + " FROM runs WHERE id = ?");
  select.bind(1, id);
  if (!select.executeStep()) {
    throw Error(ErrorCode::invalid, database.getFilename() + ": has no run " + std::to_string(id));
  }
  RunResult run;
  run.run_id = id;
  const Reader row(CheckedRow(select, name_of_run(database, "runs", id)));
  visit_columns(run, [&](const char* column, auto&& field) { row.read(column, field); });
  run.predicted = is_predicting(run.backend);
  read_series(database, id, run);
  read_peaks(database, id, run);
  read_phases(database, id, run);
  read_lists(database, id, run);
  return run;
}

Outcome read_outcome(const CheckedRow& row) {
  const std::string name = row.text("outcome");
  for (const Outcome outcome :
       {Outcome::ok, Outcome::out_of_memory, Outcome::infeasible, Outcome::failed}) {
    if (name == name_of(outcome)) return outcome;
  }
  row.fail("outcome", "\"" + shortened(name) + "\" is unknown");
}

}  // namespace zl
