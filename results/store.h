// The database of runs: SQLite, one file, read and written by several programs at once.
// Ownership: a Store owns its connection; closing is the destructor. Threads: one Store per thread;
// any number of Stores, in any number of processes, may share a file (not on a network file
// system).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/train/run_result.h"
#include "results/environment.h"

namespace SQLite {
class Database;
}

namespace zl {

struct ScenarioRecord {
  std::string hash;  // of the content with one strategy, without backend: what simulated and
                     // measured runs of the same scenario share
  std::string name;
  std::string json;  // strict JSON, without comments
};

// Empty or 0: any.
struct RunFilter {
  std::string scenario_hash;
  std::string scenario_name;
  std::string strategy;
  std::string backend;
  std::int64_t limit = 0;
  std::string tag = {};
  std::string since = {}, until = {};  // UTC, ISO 8601 or the front of it; both included
  std::vector<std::int64_t> ids = {};
};

// What a run is saved with. The tags are names separated by spaces.
struct RunLabels {
  std::string note = {}, tags = {};
  std::string saved_at = {};  // of a run that was saved elsewhere; empty: now
};

struct RunSummary {
  std::int64_t id = 0;
  std::string saved_at;  // UTC, ISO 8601
  std::string scenario_hash, scenario_name;
  std::string strategy, backend;
  bool predicted = false;  // RunResult's
  Outcome outcome = Outcome::ok;
  std::string message;                                    // empty when ok
  std::string model, cluster, software, data, precision;  // empty: unknown; software: this core's
  int ranks = 0;
  std::int64_t steps = 0;          // that this run took
  std::int64_t first_step = 0;     // that were taken before
  std::int64_t planned_steps = 0;  // of the scenario; and so on: 0 is unknown
  std::int64_t sequence_length = 0, micro_batch = 0, gradient_accumulation = 0;
  std::int64_t tokens = 0;  // of a step of all ranks, where it was stored
  double final_loss = 0;    // NaN: none
  double best_validation_loss = 0, learning_rate = 0;  // the lowest, the highest; NaN: none
  double tokens_per_second = 0;
  double step_time_median = 0;  // seconds
  std::int64_t peak_device_bytes = 0;
  std::int64_t wire_bytes_per_step = 0;
  std::string note, tags;

  // Of all ranks; 0: unknown.
  std::int64_t tokens_per_step() const {
    return tokens > 0 ? tokens : ranks * micro_batch * gradient_accumulation * sequence_length;
  }
};

// A prediction beside the measurement of the same scenario, a row of the view sim_vs_measured.
// Errors are relative to the measurement; NaN where one of the two is not ok.
struct Prediction {
  std::string scenario_hash, scenario_name;
  std::string strategy, backend;  // of the measurement
  std::int64_t measured_run = 0, simulated_run = 0;
  double measured_step_time = 0, simulated_step_time = 0;  // seconds
  double simulated_low = 0, simulated_high = 0;            // error bar of the prediction; 0: none
  double step_time_error = 0, peak_device_error = 0, wire_bytes_error = 0;
};

// A run that others published beside what was predicted of it, with the error bar.
struct PublishedPrediction {
  std::string run, source, link;
  std::string software, gpu;
  bool is_memory = false;  // bytes of a device at its peak; else seconds of a step
  double measured = 0, predicted = 0, low = 0, high = 0;
  double left_out = 0;                    // by a fit without the run's group; 0: not known
  bool is_composed = false;               // of operators timed one by one
  std::vector<double> measurements = {};  // all, of which `measured` is the median; empty: only it
  std::string predicted_at = {};          // UTC, ISO 8601; of those that are read
};

// A run under way in some program.
struct LiveRun {
  std::int64_t id = 0;
  std::string scenario, strategy, backend;
  std::int64_t steps = 0;       // planned
  std::vector<double> loss;     // of the steps so far
  std::int64_t first_step = 0;  // that were taken before; known from the first step on
};

// Every function throws Error{failed} (file system, locked for 30 s) or Error{invalid} (damaged
// file or row, no such run, a value the tables refuse), with the path in the message.
class Store {
 public:
  enum class Mode { read_write, read_only };

  // read_write creates the file and its folder and migrates an older file; read_only needs a
  // current file and can be open while others write. Refused and left untouched, Error{invalid}:
  // a file that is no database, another program's database, a newer zerolab's.
  static Store open(const std::filesystem::path& path, Mode mode);

  // Empty, without a file.
  static Store in_memory();

  // To read: as read_only, but of an older version what open_copy() gives.
  static Store open_any_version(const std::filesystem::path& path);

  // What the file holds now, of this or an older version, in memory; the file stays as it is.
  // Throws as open() does.
  static Store open_copy(const std::filesystem::path& path);

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // One transaction: all of the run or nothing. Returns its id; `run.run_id` is not read.
  std::int64_t save(const RunResult& run, const ScenarioRecord& scenario,
                    const Environment& environment, const RunLabels& labels = {});

  // Newest first; with filter.ids in their order, Error{invalid} naming what is no run. Damaged
  // runs are passed over with a warning that names file, row and column.
  std::vector<RunSummary> list(const RunFilter& filter = {});

  // All fields of a saved run; precision is empty and reserved_host 0 in runs that a zerolab saved
  // whose tables had no column for them. Times that the tables hold in picoseconds (step_time*,
  // time) come back rounded to one; NaN comes back as NaN.
  RunResult load(std::int64_t id);

  // The machine and build of a run.
  Environment environment(std::int64_t id);

  // The JSON of a stored scenario.
  std::string scenario_json(const std::string& hash);

  // Everything that was both predicted and measured, by scenario and strategy.
  std::vector<Prediction> predictions();

  // Published runs: of each run, quantity and software the newest prediction stays.
  void keep_published(std::span<const PublishedPrediction> predictions);
  std::vector<PublishedPrediction> published();

  // The next five change all of the runs or, throwing Error{invalid} that names every id that no
  // run has, none. Tags are names separated by spaces.
  void annotate(std::int64_t id, const std::string& note, const std::string& tags);
  void note(std::span<const std::int64_t> ids, const std::string& text);
  void tag(std::span<const std::int64_t> ids, const std::string& tags);
  void untag(std::span<const std::int64_t> ids, const std::string& tags);
  void remove(std::span<const std::int64_t> ids);  // their ids are not given again

  // Adds the runs of another database that the filter takes, in one transaction. A run is the same
  // when its scenario, its machine, the moment it was saved and its numbers are: what is here
  // already stays as it is, but for the note and tags of a run that has none here. Damaged runs are
  // passed over with a warning.
  struct Merged {
    std::int64_t added = 0, present = 0, passed_over = 0;
  };
  Merged merge(Store& from, const RunFilter& filter = {});

  // Writes all of it as a new file. Throws Error{failed} when there is one.
  void write_copy(const std::filesystem::path& path);

  // Runs under way: begin_live returns the id for the other two. A row that nobody updated for ten
  // minutes is of a program that died: live_runs leaves it out, begin_live removes it.
  std::int64_t begin_live(const LiveRun& run);
  void update_live(std::int64_t id, std::int64_t first_step, const std::vector<double>& loss);
  void end_live(std::int64_t id);
  std::vector<LiveRun> live_runs();  // oldest first

  // A number that changes when another connection has written.
  std::int64_t data_version();

 private:
  explicit Store(std::unique_ptr<SQLite::Database> database);
  template <class Change>
  void change_notes(std::span<const std::int64_t> ids, Change&& change);
  bool merge_run(Store& from, const RunSummary& run);

  std::unique_ptr<SQLite::Database> database_;
};

}  // namespace zl
