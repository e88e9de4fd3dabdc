// A scenario: one model on one cluster under several strategies, everything resolved to numbers.
// Ownership: a value. Threads: immutable after loading.
//
// A scenario file is JSON (comments allowed) with "schema": 1 and the keys model, cluster,
// strategies, run; model, cluster and each strategy are a catalogue name, a path, or an inline
// object. Paths are relative to the scenario file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/model/model_config.h"
#include "scenarios/deepspeed/import.h"

namespace zl {

// Data-parallel ranks of the real backends are threads, but for launched processes.
inline constexpr std::int64_t kMaxRealRanks = 64;

struct RunSettings {
  std::int64_t ranks = 0;  // without one: as many as the cluster's name says, 4 on "local"
  std::int64_t steps = 20;
  std::uint64_t seed = 1234;
  std::int64_t sequence_length = 0;  // without one: the model's max_sequence
  std::string data = "bible";        // or a text file, or a .bin of uint16 tokens
  std::string tokenizer = "byte";    // or a folder with vocab.json and merges.txt
  std::int64_t device_memory = 0;    // bytes; 0: unlimited
  std::int64_t host_memory = 0;      // bytes of a rank's offload; 0: unlimited
  std::string nvme_path;             // empty: what each strategy says
  bool deterministic = true;         // see WorldOptions
  // Of the cpu backend: threads of this process, or the processes that mpirun started.
  std::string communicator = "threads";
  // Bytes a second that a rank of this machine, or a node of another cluster, sends at most; 0:
  // what the machine or the cluster has. See sim::with_link_bandwidth.
  double link_bandwidth = 0;
  // Whose speed a simulated GPU has: a stack of the catalogue or a file; empty: this core's own.
  std::string stack;
  // Overrides what the strategies say.
  std::optional<DType> precision;
  // For strategies that state no batch; from the command line they override every strategy.
  std::int64_t micro_batch = 0;
  std::int64_t gradient_accumulation = 0;
};

// What the command line says; unset members leave the scenario as it is. Paths are relative to the
// working directory.
struct ScenarioOverrides {
  std::optional<std::string> model, cluster;
  std::vector<std::string> strategies;
  std::optional<std::int64_t> ranks, steps, seed, sequence_length, micro_batch,
      gradient_accumulation;
  std::optional<std::string> data, tokenizer, device_memory, host_memory, nvme_path, link_bandwidth,
      precision, communicator, stack;
  std::optional<bool> deterministic;
};

struct Scenario {
  std::string name;
  ModelConfig model;
  std::string cluster;       // name
  std::string cluster_json;  // text of an inline cluster or cluster file; empty: see `cluster`
  std::vector<ImportedStrategy> strategies;
  RunSettings run;
};

// `name_or_path`: a study of the catalogue, the name of a model (the five ZeRO strategies on
// "local"), a scenario file, or "" when overrides.model is set. What says no precision gets
// sim::default_precision of the cluster.
// Throws Error{invalid} naming the key, the value and the fix.
Scenario load_scenario(const std::string& name_or_path, const ScenarioOverrides& overrides = {});

Scenario scenario_from_json(std::string_view text, std::string_view source,
                            const ScenarioOverrides& overrides = {});

// Real backends start one thread per rank: throws Error{invalid} outside 1..64.
void check_real_ranks(const Scenario& scenario, std::string_view backend);

// The scenario with every value spelled out, keys in a fixed order; loading it again gives the same
// text. `indent` < 0: one line.
std::string canonical_json(const Scenario& scenario, int indent = -1);

// 16 hexadecimal digits: FNV-1a (64 bits) of the canonical JSON without the name.
std::string content_hash(const Scenario& scenario);

// The scenario with this strategy alone: what a stored run is a run of, whatever ran beside it.
Scenario with_one_strategy(const Scenario& scenario, const ImportedStrategy& strategy);

}  // namespace zl
