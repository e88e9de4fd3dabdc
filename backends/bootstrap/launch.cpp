#include "backends/bootstrap/launch.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/base/text.h"

namespace zl {
namespace {

constexpr int kPort = 29501;

// The variables of one launcher. Slurm says how many nodes there are, not ranks of this one.
struct Names {
  const char *launcher, *rank, *ranks, *local_rank, *local_ranks;
};
// Slurm's are those of a step: a batch script's own shell has a rank too, but is not launched.
constexpr Names kLaunchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr}};

class Variables {
 public:
  explicit Variables(const VariableLookup& lookup) : lookup_(lookup) {}

  std::string text(const char* name) const {
    const char* value = name == nullptr ? nullptr : lookup_(name);
    return value == nullptr ? "" : value;
  }
  bool has(const char* name) const { return !text(name).empty(); }

  int number(const char* name, int low, int high, const char* launcher) const {
    const std::string value = text(name);
    const auto number = integer_in(value);
    if (!number || *number < low || *number > high) {
      throw Error(ErrorCode::usage,
                  std::string(name) + ": " + (value.empty() ? "is not set" : "'" + value + "'") +
                      (value.empty() ? ", although "
                                     : " is not an integer between " + std::to_string(low) +
                                           " and " + std::to_string(high) + "; ") +
                      launcher +
                      " set the other variables of a launched process; start all ranks " +
                      "with one launcher, or unset its variables to run alone");
    }
    return static_cast<int>(*number);
  }

 private:
  const VariableLookup& lookup_;
};

std::string with_port(const std::string& host, int port) {
  return host + ":" + std::to_string(port);
}

// Without the launcher's word: as if ranks were spread evenly, or all were here.
int local_ranks(const Variables& variables, const Names& names, int ranks) {
  if (names.local_ranks != nullptr && variables.has(names.local_ranks)) {
    return variables.number(names.local_ranks, 1, ranks, names.launcher);
  }
  if (!variables.has("SLURM_STEP_NUM_NODES")) return ranks;
  const int nodes = variables.number("SLURM_STEP_NUM_NODES", 1, ranks, names.launcher);
  return (ranks + nodes - 1) / nodes;
}

bool one_node(const Variables& variables, const Names& names, int ranks) {
  if (names.local_ranks == nullptr) return variables.text("SLURM_STEP_NUM_NODES") == "1";
  return variables.text(names.local_ranks) == std::to_string(ranks);
}

std::string job(const Variables& variables) {
  if (variables.has("PMIX_NAMESPACE")) return variables.text("PMIX_NAMESPACE");
  if (!variables.has("SLURM_STEP_ID")) return "";
  return variables.text("SLURM_JOB_ID") + "." + variables.text("SLURM_STEP_ID");
}

}  // namespace

std::string first_host(const std::string& list) {
  const std::size_t end = list.find_first_of("[,");
  std::string start = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return start;
  return start + list.substr(end + 1, list.find_first_of("-,]", end) - end - 1);
}

std::optional<Launch> detect_launch(const VariableLookup& lookup) {
  const Variables variables(lookup);
  for (const Names& names : kLaunchers) {
    if (!variables.has(names.rank) || !variables.has(names.ranks)) continue;
    constexpr int kMost = 1'000'000;
    Launch launch;
    launch.launcher = names.launcher;
    launch.ranks = variables.number(names.ranks, 1, kMost, names.launcher);
    if (launch.ranks == 1) return std::nullopt;
    launch.rank = variables.number(names.rank, 0, launch.ranks - 1, names.launcher);
    launch.local_rank = variables.number(names.local_rank, 0, launch.rank, names.launcher);
    launch.local_ranks = local_ranks(variables, names, launch.ranks);
    launch.one_node = one_node(variables, names, launch.ranks);
    launch.job = job(variables);
    return launch;
  }
  return std::nullopt;
}

namespace {

const char* of_environment(const char* name) { return std::getenv(name); }

}  // namespace

const std::optional<Launch>& this_launch() {
  static const std::optional<Launch> once = detect_launch(of_environment);
  return once;
}

std::string rendezvous(const Launch& launch, const VariableLookup& lookup) {
  const Variables variables(lookup);
  if (variables.has("NCCL_COMM_ID")) return variables.text("NCCL_COMM_ID");
  if (variables.has("MASTER_ADDR")) {
    const int given = variables.has("MASTER_PORT")
                          ? variables.number("MASTER_PORT", 1, 65534, launch.launcher.c_str())
                          : kPort;
    const bool agents = launch.launcher == "torchrun";
    return with_port(variables.text("MASTER_ADDR"), agents ? given + 1 : given);
  }
  if (launch.one_node) return with_port("127.0.0.1", kPort);
  if (variables.has("SLURM_STEP_NODELIST")) {
    return with_port(first_host(variables.text("SLURM_STEP_NODELIST")), kPort);
  }
  throw Error(ErrorCode::usage, "MASTER_ADDR: is not set, and " + launch.launcher +
                                    " does not say where rank 0 runs; pass its host to all ranks "
                                    "(mpirun -x MASTER_ADDR=host)");
}

std::string rendezvous(const Launch& launch) { return rendezvous(launch, of_environment); }

}  // namespace zl
