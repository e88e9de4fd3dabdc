// What one device can do: rates and fixed costs, as found in data sheets and benchmarks.
// Ownership: a value. Threads: value type.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "simulator/cluster/generation.h"
#include "simulator/cluster/software_kernels.h"

namespace zl::sim {

inline constexpr std::size_t kDTypes = 8;

struct ComputeRate {
  double peak = 0;        // dense FLOP/s
  double efficiency = 0;  // share of the peak that a large, well-shaped GEMM reaches

  bool operator==(const ComputeRate&) const = default;
};

struct DeviceSpec {
  std::string name;
  std::int64_t memory = 0;                               // bytes; 0: unknown
  std::int64_t workspace = 0;                            // bytes lent to libraries, of each rank
  double memory_bandwidth = 0;                           // bytes/s
  double memory_efficiency = 0;                          // share of it that streaming ops reach
  int multiprocessors = 0;                               // 0: GEMM time has no tile and wave steps
  double launch_seconds = 0;                             // of the host, per issued op
  double kernel_seconds = 0;                             // the shortest op on the device
  double attention_forward = 0, attention_backward = 0;  // share of the peak, see cost/attention
  std::array<ComputeRate, kDTypes> rates{};
  Generation generation = Generation::unknown;
  // Watts that the board is held to, and those that its rates are stated for; 0: not known, and
  // rates as stated.
  double power_limit = 0, power_design = 0;
  SoftwareKernels software;  // with_software's

  // Share of the stated matrix rates left by the power limit. Frequency goes by the square root of
  // power where voltage hardly falls: 500 of 700 W give 0.85.
  double clock() const;

  const ComputeRate& rate(DType dtype) const { return rates[static_cast<std::size_t>(dtype)]; }
  bool operator==(const DeviceSpec&) const = default;
};

// Does the device compute in this 16-bit type faster than in fp32? Without a rate of its own in the
// cluster file it does not.
inline bool has_tensor_peak(const DeviceSpec& device, DType dtype) {
  return device.rate(dtype).peak > device.rate(DType::f32).peak;
}

}  // namespace zl::sim
