// The two sides of a comparison: stored runs by id or by name, or results in files.
// Ownership: values. Threads: the main thread.
#pragma once

#include <string>
#include <vector>

#include "core/train/run_result.h"
#include "results/configuration.h"

namespace zl::cli {

struct CompareSide {
  std::vector<RunResult> repeats;  // of one configuration; at least one
  std::string scenario;            // name; empty: of a file
  std::string saved_at;            // of the last
  std::string configuration;       // JSON of the stored scenario; empty: of a file
  std::string machine;             // that measured; empty: of a file, or nothing was measured
};

struct CompareQuestion {
  std::string a, b;               // ids (12, or 12,13,14), strategies, or FILE[:STRATEGY]
  std::string scenario, backend;  // empty: any
  std::string database;           // empty: the default path
};

// What a and b stand for. Two single runs are a pair whatever they are; of two files, results of
// the same strategy and backend are. Of a strategy it is the newest run that ended as it should,
// for both sides of one backend and one scenario where there are such. Throws Error{invalid} and
// Error{usage} saying what is not there, and for repeats that are configured differently.
std::vector<std::pair<CompareSide, CompareSide>> compare_sides(const CompareQuestion& question);

// What keeps b from being better or worse than a for its own sake: other configurations, backends
// or machines, and runs that are not over.
std::vector<ConfigurationDifference> side_differences(const CompareSide& a, const CompareSide& b);

}  // namespace zl::cli
