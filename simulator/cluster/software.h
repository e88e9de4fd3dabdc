// The software that trains on a cluster, as far as its speed differs from this project's own core.
// Ownership: a value. Threads: value type; the functions are pure.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/model_config.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/cluster/software_abilities.h"
#include "simulator/cluster/software_kernels.h"
#include "simulator/cluster/software_memory.h"
#include "simulator/cluster/techniques.h"

namespace zl::sim {

// A cluster's rates are what the best kernels reach, issued from C++. A software reaches a share of
// them, moves more bytes where it runs several kernels, and takes the host longer to issue. What a
// profile does not say is as in this core. Recordings hold this core's bytes under all of them;
// what the software itself would hold, held_memory() predicts from its section `memory`.
struct Software {
  std::string name;
  std::string base;  // the profile that this one's file begins from; empty: none
  // Shares of the cluster's rates, above 0 and at most 1.
  double gemm = 1, memory = 1, intra = 1, inter = 1;
  std::map<Generation, double> gemm_on;  // instead of `gemm`, where a generation differs
  std::map<Generation, double> gemm_unaligned;
  double op_seconds = 0;          // of the host, per kernel
  double step_seconds = 0;        // of the host, per step
  double collective_seconds = 0;  // of every collective, beside the cluster's own
  double overlap_loss = -1;       // as ClusterSpec's; below 0: the cluster's
  SoftwareKernels kernels;        // attention: where no generation says another
  // Instead of kernels.ops, by kind of op: of models with RMSNorm, and with a gated activation.
  std::map<std::size_t, OpWork> rms_norm_ops, gated_ops;
  std::map<Generation, AttentionKernel> attention;
  std::optional<SoftwareMemory> held;          // none: what it holds is not known
  std::optional<SoftwareAbilities> abilities;  // none: no plan is more than it can do
  double step_error = 0;  // as ClusterSpec's, of published runs that were left out of its fit
  std::map<Generation, double> step_errors;        // of generations that published runs support
  std::map<Generation, TechniqueSets> techniques;  // that these used together; none: any
  std::vector<std::string> fitted;       // keys of numbers that were fitted to published runs
  bool fits_reserve = false;             // memory.device.reserve was, too, to bytes
  std::map<std::string, double> priors;  // what benchmarks say of these: where a fit begins
  // By group of runs that a fit was without: the numbers that it found, in the order of `fitted`.
  std::map<std::string, std::vector<double>> left_out;

  AttentionKernel attention_on(Generation generation) const;
  // Do published runs support what it says of such GPUs?
  bool knows(Generation generation) const { return step_errors.contains(generation); }
};

// Throws Error{invalid} naming the source and the key, as parse_cluster.
Software parse_software(std::string_view json, const std::string& source);

// The cluster as it prices the strategy: with the error of what no published run supports, where
// that uses techniques which none of them used together.
ClusterSpec with_strategy(ClusterSpec cluster, const Strategy& strategy);

// The cluster's devices under that software, which trains such a model. Throws Error{invalid} for a
// cluster that was measured (its calibration holds the software already) or whose processors are
// the host's.
ClusterSpec with_software(ClusterSpec cluster, const Software& software, const ModelConfig& model);

// As steps are that were put together from operators timed one by one: no queue hides the host, and
// nothing stands for the end of a step.
ClusterSpec timed_apart(ClusterSpec cluster);

}  // namespace zl::sim
