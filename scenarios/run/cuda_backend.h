// The CUDA backend as the runner and `zerolab devices` see it, whether it was built in or not.
// Ownership: values. Threads: any.
#pragma once

#include <optional>
#include <string>

#include "core/device/world.h"
#include "simulator/cluster/cluster_spec.h"
#include "simulator/json/reading.h"

namespace zl {

// Registers "cuda". Hardware is looked for when it is asked for.
void add_cuda(BackendRegistry& registry);

// The catalogue's name of a GPU by the name and memory CUDA gives it, "NVIDIA H200" -> "h200"; ""
// when there is none. PCIe and NVL cards have other peaks than the SXM modules of the catalogue.
std::string catalogue_gpu(const std::string& device_name, std::int64_t memory);

// The GPUs that `ranks` ranks of the backend run on: one each where there are enough, else one for
// all. Absent when there is no GPU or the catalogue has none like it.
std::optional<sim::ClusterSpec> cuda_cluster(int ranks);

// What one of `ranks` ranks can use: an equal part of the memory of a shared GPU.
DeviceProperties cuda_device_properties(int ranks);

// {"gpus": [...], "driver_cuda": .., "runtime": .., "cublaslt": .., "nccl": .., "why": null or
// text}.
Json describe_cuda();

}  // namespace zl
