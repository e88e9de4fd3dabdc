#include "simulator/cluster/find_cluster.h"

#include <algorithm>
#include <thread>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"

namespace zl::sim {
namespace {

struct Name {
  int devices = 1;
  std::string gpu;
};

// "8xh100" or "h100". Only digits before the first x make it a count.
Name split(const std::string& name) {
  const std::size_t x = name.find('x');
  const bool counted = x != std::string::npos && name.find_first_not_of("0123456789") == x;
  if (!counted) return {1, name};
  const std::int64_t devices = integer_in(name.substr(0, x)).value_or(0);
  if (devices < 1 || devices > 1'000'000) {
    throw Error(ErrorCode::invalid, "cluster: \"" + shortened(name) +
                                        "\": the number of GPUs before x is " +
                                        "not between 1 and 1000000");
  }
  return {static_cast<int>(devices), name.substr(x + 1)};
}

// Of "a100" that is "a100-80", of which it is the beginning, and not "h100".
std::string nearest_gpu(const std::string& gpu, const std::vector<std::string>& known) {
  std::vector<std::string> begin_alike;
  for (const std::string& each : known) {
    if (!gpu.empty() && each.starts_with(gpu)) begin_alike.push_back(each);
  }
  return nearest(gpu, begin_alike.empty() ? known : begin_alike);
}

}  // namespace

ClusterSpec find_cluster(const std::string& name, const ClusterSources& sources) {
  if (name == "local") {
    if (!sources.local.empty()) return parse_cluster(sources.local, "local.json");
    return uncalibrated_local(static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  }
  const Name wanted = split(name);
  if (wanted.gpu == "local" || wanted.gpu == "local-cuda") {
    throw Error(ErrorCode::invalid, "cluster: \"" + name + "\": " + wanted.gpu +
                                        " is this machine, once; use --cluster " + wanted.gpu +
                                        " --ranks " + std::to_string(wanted.devices));
  }
  if (std::find(sources.gpus.begin(), sources.gpus.end(), wanted.gpu) == sources.gpus.end()) {
    std::vector<std::string> known = sources.gpus;
    known.emplace_back("local");
    std::string list;
    for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
    throw Error(ErrorCode::invalid, "cluster: \"" + shortened(wanted.gpu) +
                                        "\" is not in the catalogue; the nearest name is \"" +
                                        nearest_gpu(wanted.gpu, known) + "\". Known: " + list +
                                        ", and NxGPU for N of them");
  }
  ClusterSpec cluster = parse_cluster(sources.text(wanted.gpu), wanted.gpu + ".json");
  cluster.name = name;
  cluster.devices = wanted.devices;
  return cluster;
}

ClusterSpec uncalibrated_local(int cores) {
  ClusterSpec cluster;
  cluster.name = "local";
  cluster.device.name = "cpu";
  cluster.device.memory_bandwidth = 1e10 * cores;
  cluster.device.memory_efficiency = 0.7;
  cluster.device.launch_seconds = 1e-6;
  cluster.device.rates.fill({5e10 * cores, 0.6});
  cluster.device.attention_forward = cluster.device.attention_backward = 0.2;
  cluster.node_devices = 1'000'000;  // all ranks are threads of one process
  cluster.intra = {"threads", {5e-6, 5e-6, 5e-6}, 4e9, 1.0};
  cluster.inter = cluster.intra;
  cluster.host = {"memory", {1e-6, 1e-6, 1e-6}, 5e9, 1.0};
  cluster.compute_is_host = true;
  cluster.shared_cores = cores;
  cluster.spread.fill(0.5);
  cluster.step_error = 0;
  cluster.own_step_error = 0;
  return cluster;
}

}  // namespace zl::sim
