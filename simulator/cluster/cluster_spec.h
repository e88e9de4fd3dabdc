// A cluster as the cost model sees it: equal devices in equal nodes, three kinds of links, and,
// for a machine that was measured, fitted prices. Read from and written to JSON.
// Ownership: a value. Threads: value type; the functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/device/device.h"
#include "simulator/cluster/coefficients.h"
#include "simulator/cluster/device_spec.h"
#include "simulator/cluster/link.h"
#include "simulator/cluster/techniques.h"

namespace zl::sim {

// Prices of one class err together, so their uncertainties add up; those of different classes are
// independent.
enum class CostClass : std::uint8_t { gemm, attention, memory, collective, copy, host };
inline constexpr std::size_t kCostClasses = 6;
const char* name_of(CostClass cost_class);

// Of devices that nobody calibrated, under software of this core's kind (fused kernels): root mean
// square of measured over predicted step times, less one; tests/runner/published_test.cpp.
inline constexpr double kUncalibratedStepError = 0.43;

// Two predictions of one machine under one software err together; what is each one's own is less:
// the standard deviation of ln(measured / predicted), by the fit without them, around the mean of
// the published runs with as many ranks of one source; tests/runner/published_test.cpp holds it to
// them.
inline constexpr double kOwnStepError = 0.076;

struct ClusterSpec {
  std::string name;
  DeviceSpec device;
  int devices = 1;          // ranks that run
  int node_devices = 1;     // devices of a full node
  Link intra, inter, host;  // within a node, between nodes, device <-> host memory
  // Host memory <-> files of a whole node, which its devices share. Older files have none: a common
  // data-centre drive.
  Link storage{"nvme", {1e-4, 1e-4, 1e-4}, 3e9, 1.0};
  std::int64_t host_memory = 0;  // bytes of a node, shared by its ranks; 0: unknown
  // Bytes/s of a node's host memory, reads and writes together, shared by its devices' host work.
  double host_memory_bandwidth = 1e11;
  double collective_seconds = 0;  // fixed cost of one collective
  // Share of its progress that an op loses while another stream is busy.
  double overlap_loss = 0;
  // Bytes a second that a rank sends at most, whatever the links and the calibration say: a
  // collective lasts at least its wire bytes over this, without taking cores. 0: no such limit.
  double link_bandwidth = 0;
  bool compute_is_host = false;  // the compute stream runs on the host thread (CPU backend)
  // Cores that all ranks share; `device` then describes the whole machine and each rank gets an
  // equal part of it. 0: every rank has a device of its own.
  int shared_cores = 0;
  std::array<double, kCostClasses> spread{0.10, 0.20, 0.20, 0.25, 0.15, 0.50};  // relative sd
  double step_seconds = 0;  // of the host, at the end of a step
  // Of step times, as bar_of() has it; 0: what the prices' spreads add up to. A calibration and a
  // profile of software bring their own.
  double step_error = kUncalibratedStepError;
  bool is_supported = true;                 // by published runs, of that software on such devices
  double unsupported_step_error = 0;        // of strategies that use what no run did together:
  TechniqueSets techniques{~Techniques()};  // those; without such a software all there are
  double own_step_error = kOwnStepError;    // see there; 0: none of it is shared
  std::optional<Calibration> calibration;

  bool operator==(const ClusterSpec&) const = default;
};

// Throws Error{invalid} naming the source and the key: malformed JSON with line and column, unknown
// keys with the nearest known one, missing keys, values out of range. Comments and "x-" keys are
// allowed.
ClusterSpec parse_cluster(std::string_view json, const std::string& source);

// JSON that parse_cluster turns into the same spec.
std::string cluster_json(const ClusterSpec& cluster);

// The same machines with `devices` ranks. Throws Error{invalid} below 1.
ClusterSpec with_devices(ClusterSpec cluster, int devices);

// The same machines with slower links: the ranks of a shared machine get this limit each; in a
// cluster of several nodes the adapters of a node have it together; in one node it is every
// device's link.
ClusterSpec with_link_bandwidth(ClusterSpec cluster, double bytes_per_second);

// What a run computes in where nobody says: bf16 on devices with a tensor peak of it, else fp16
// likewise, else fp32; fp32 where the host's processor is the device.
DType default_precision(const ClusterSpec& cluster);

// What sim::Device reports for one device of the cluster. Its share of host memory: that of the
// ranks of a full node.
DeviceProperties device_properties(const ClusterSpec& cluster);

}  // namespace zl::sim
