// What kernels a software runs where this core runs one op: what they move, how many there are.
// Ownership: a value. Threads: value type.
#pragma once

#include <array>
#include <cstdint>

#include "core/ops/op_fwd.h"

namespace zl::sim {

// Whose attention. core: this one's, at the rates of the cluster's file.
enum class AttentionKernel : std::uint8_t {
  core,
  unfused,  // scores go through memory
  memory_efficient,
  flash_1,
  flash_triton,
  flash_2,
  flash_3,
  cudnn
};
inline constexpr std::size_t kAttentionKernels = 8;
const char* name_of(AttentionKernel kernel);

struct OpWork {
  double bytes_per_element = 0;  // read and written, of rows x columns; 0: what the op moves here
  double kernels = 1;            // that the host issues

  bool operator==(const OpWork&) const = default;
};

// Shares are above 0 and at most 1.
struct SoftwareKernels {
  AttentionKernel attention = AttentionKernel::core;
  double attention_rate = 1;  // share of the kernel's public curve
  // Bytes moved for one score of unfused attention: forward, backward.
  std::array<double, 2> score_bytes{13, 19};
  // Share of the rate of products that 16-bit ones reach whose sizes are no multiples of eight, for
  // which libraries have other kernels.
  double gemm_unaligned = 1;
  double reduction = 1;  // share of the memory's rate that sums over rows reach (norms backward)
  std::array<OpWork, kOpKinds> ops{};
  double collective_host_seconds = -1;  // to issue one; below 0: as any op
  double message_host_seconds = -1;     // likewise an exchange of messages between stages
  // Bytes moved on the device for one byte of what is gathered and what is reduced and scattered.
  double gather_copies = 0, scatter_copies = 0;
  // Bytes that pass the host's link for one byte of packed signs, where the library that sends them
  // knows no devices.
  double staged_copies = 0;
  // Of the products that Phase::recompute_products repeats, the share that the software does.
  double products_again = 1;
  // Connections of a rank to others that an all-to-all between nodes is worth: where one connection
  // is slower than the adapter, several are faster. A ring has one.
  double connections = 1;
  // The host waits for the device after every exchange between stages.
  bool synchronizes_messages = false;
  // Of a node that a ring between nodes uses at most; 0: those of all its ranks.
  double adapters = 0;
  // Ranks of a pipeline reduce their gradients when all passes have ended, and not after their own
  // last one, for which the stage before waits.
  bool reduces_last = false;
  // Messages between the stages of a pipeline have a communicator, so a stream, of their own.
  bool message_stream = false;
  // Stages update without waiting for the norm and overflows of the others, and take an update back
  // where it was wrong (optimizer post-validation, Qi et al. 2024).
  bool post_validates = false;
  // Operators are timed one by one: each lasts at least as long as the host takes to issue it, and
  // the host issues the next when it has ended.
  bool timed_apart = false;

  bool operator==(const SoftwareKernels&) const = default;
};

}  // namespace zl::sim
