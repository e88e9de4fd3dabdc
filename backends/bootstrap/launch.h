// Which rank of a job this process is, from the variables of the launcher that started it:
// torchrun, Open MPI's or MPICH's mpirun, Slurm's srun. Ownership: values. Threads: reads the
// environment; call it before threads change that.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace zl {

struct Launch {
  int rank = 0, ranks = 1;
  int local_rank = 0;    // among the processes of this node: the GPU it takes
  int local_ranks = 1;   // the processes of this node
  bool one_node = true;  // all are on this one
  std::string launcher;  // "torchrun", "Open MPI", "MPICH", "Slurm"
  // What no other job of this node and user has; empty where the launcher does not say it.
  std::string job;
};

// Value of a variable, nullptr when it is not set: std::getenv, or a test's table.
using VariableLookup = std::function<const char*(const char* name)>;

// nullopt for a process that was not launched as one of several. Throws Error{usage} naming the
// variable, its value and the fix.
std::optional<Launch> detect_launch(const VariableLookup& lookup);
// Of this process; looked at once.
const std::optional<Launch>& this_launch();

// host:port where rank 0 answers, for those who need it (NCCL_COMM_ID; MPI finds its own):
// NCCL_COMM_ID, or MASTER_ADDR and MASTER_PORT (the port after torchrun's own, which its agents
// use), or this host when all ranks are on it, or the first host of a Slurm step. Throws as
// detect_launch.
std::string rendezvous(const Launch& launch, const VariableLookup& lookup);
std::string rendezvous(const Launch& launch);

// "node[03-07,9],login1" -> "node03": the first host of a Slurm list.
std::string first_host(const std::string& list);

}  // namespace zl
