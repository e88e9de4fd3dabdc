// Runs that others have measured and published, and what scenario of this program each is.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/files/scenario.h"
#include "scenarios/published/csv_rows.h"

namespace zl {

// Where a time is from: a step that was timed, or operators that were timed one by one and added up
// to a step, which no queue and no end of a step is in.
enum class TimeKind : std::uint8_t { measured, composed };
const char* name_of(TimeKind kind);

// One configuration and how it was measured. Rows that say the same of what ran, in every column
// but id, link, value and date, are measurements of one configuration. What a table of published
// runs leaves out is empty, and 0 where it is a number.
struct PublishedRun {
  std::string id, source, link;
  TimeKind kind = TimeKind::measured;
  std::string software, gpu;  // as the catalogue calls them; empty: neither said nor known
  std::string quantity, unit;
  double value = 0;            // the median of
  std::vector<double> values;  // all measurements
  CsvRow row;                  // everything else, of the first
};

// Whether the run had an option of its program, such as "transformer-impl local", with or without a
// value: of the column `options`, parted by semicolons; of a table without it, words of the notes.
bool has_option(const CsvRow& row, std::string_view option);

// Columns as ground truth has them: id, source, gpu, n_gpus, model, layers, hidden, heads,
// kv_heads, ffn, vocab, seq, global_batch, micro_batch, tp, pp, dp, vpp, seq_parallel, zero_stage,
// offload, recompute, precision, optimizer, measured_quantity, value, unit; `software` where the
// source does not tell it, `link` to the source, `date` of a measurement, `kind` where a time is
// not measured; `schedule`, `layers_per_stage`, `dropout`, `position`, `replicas` (of sharded
// states) and `options` of what ran. Throws Error{invalid} naming source, line, column and value: a
// column that is missing, a value that is no number, a unit or a kind that is unknown.
std::vector<PublishedRun> read_published(std::string_view csv, const std::string& source);

// All tables of the catalogue.
std::vector<PublishedRun> catalog_published();
// With runs of which the mesh is known, and what they reached too roughly to judge predictions by.
std::vector<PublishedRun> catalog_meshes();

// Bytes of a device at its peak: in use, or reserved by an allocator.
bool is_memory(const PublishedRun& run);
bool is_reserved_memory(const PublishedRun& run);
// Of the last rank, which logs, and not of the fullest one.
bool is_of_last_rank(const PublishedRun& run);

// A run in terms of this program, or why it cannot be said in them.
struct Expressed {
  std::optional<Scenario> scenario;  // one strategy
  double seconds = 0;                // of one optimizer step, as measured; 0: bytes were
  double bytes = 0;                  // of the fullest device at its peak, as measured
  std::vector<double> every;         // seconds or bytes of every measurement
  std::string why_not;
};
// Under the run's software, or another.
Expressed express(const PublishedRun& run, const std::string& software = "");

}  // namespace zl
