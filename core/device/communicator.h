// Collectives among the ranks of one group, enqueued on a stream.
// Ownership: an implementation refers to its rank's device, which must outlive it. Threads: one
// object per rank; called from that rank's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/collective_kind.h"
#include "core/base/stream.h"
#include "core/base/tensor.h"
#include "core/trace/event.h"

namespace zl {

// One tensor of a grouped collective. N ranks, rank r:
//   all_reduce      destination = source [count], reduced in place (both views alike)
//   reduce_scatter  source [N * chunk] -> destination [chunk]; may alias source's r-th chunk
//   all_gather      source [chunk] -> destination [N * chunk]; source may alias destination's r-th
//                   chunk
//   broadcast       destination = source [count], from rank 0
//   all_to_all      source [N * chunk] -> destination [N * chunk]: chunk j of rank i becomes chunk
//                   i of rank j; the two must not overlap
// Types: what can_reduce() says where a collective reduces, any other type where it moves.
struct Segment {
  TensorView source, destination;
};

// All segments travel in one call (one launch latency). Reductions add in rank order 0..N-1 in f32
// (f64 for f64), then scale (average: times 1/N) and round once, so the result does not depend on
// chunking.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  ReduceOp op = ReduceOp::sum;
  Purpose purpose = Purpose::data;
  std::span<const Segment> segments;  // copied by implementations that run later
  // The group of the mesh that runs it, for books and prices; the communicator is that group's.
  Axis axis = Axis::data;
  Scope scope = {};  // where in the step, for errors
};

// One tensor to or from another rank of the group; a rank sends itself nothing.
struct Message {
  int peer = 0;  // rank in the group
  bool sends = false;
  TensorView tensor;
  Scope scope = {};  // where in the step, for errors
};

// Bytes one rank sends for a collective over `ranks` ranks, per segment, ring algorithm, c =
// elements:
//   all_reduce 2 (N-1) ceil(c/N), reduce_scatter, all_gather and all_to_all (N-1) chunk, broadcast
//   c (N-1)/N rounded up,
// times the element size. The one formula that every backend and the cost model use.
std::int64_t wire_bytes(CollectiveKind kind, const Segment& segment, int ranks);

// Bytes of the source that are the destination's too: need no copy.
std::int64_t bytes_in_place(const Segment& segment);

// Of all segments.
std::int64_t wire_bytes(const Collective& collective, int ranks);

// fp64, fp32, bf16 and fp16; int32 except for average.
bool can_reduce(DType dtype, ReduceOp op);
// Error{failed} when a segment's counts or types do not fit the collective.
void check_collective(const Collective& collective, int ranks);
// Error{failed} when a peer is not another rank of the group.
void check_messages(std::span<const Message> messages, int rank, int ranks);

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::string link() const = 0;  // "threads", "nccl", "sim", ...
  // Enqueues. Ranks must call the same collectives in the same order; a mismatch is an
  // Error{failed} on every rank that names both calls. timing: as for Device::run.
  virtual void run(StreamId stream, const Collective& collective, Timing* timing) = 0;
  // Enqueues messages that travel together: none of them waits for another of the same call, and
  // the stream goes on when all have arrived or left their buffers, for which their peers must have
  // called, too. The n-th message from one rank to another on one stream is the n-th that the other
  // receives from it there; another type or count is an Error{failed} on both that names both.
  // Until its peers have called, a call may also hold up what this rank calls later, on other
  // streams (NCCL: of this group; ranks that share a GPU: of any): what must not wait for each
  // other goes into one call, or into an order in which sends may block. timing: as for
  // Device::run.
  virtual void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) = 0;
  // Ranks that give the same color (0 or more) form a group of their own, in the order of their
  // keys (equal keys: of their ranks here). Every rank of this group must call it, in the order of
  // its calls on the compute stream; blocks until all have. The new communicator refers to the
  // same device and to what this one refers to; a failure in one group ends the calls of all.
  // Errors name ranks as the world numbers them.
  virtual std::unique_ptr<Communicator> split(int color, int key) = 0;
};

}  // namespace zl
