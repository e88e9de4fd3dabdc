#include "backends/cuda/nccl_calls.h"

#include "core/base/error.h"
#include "core/threads/call_text.h"

namespace zl::cuda {
namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ncclFloat64;
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::i32:
      return ncclInt32;
    default:
      return ncclUint8;
  }
}

ncclRedOp_t op_of(ReduceOp op) {
  constexpr ncclRedOp_t kOps[] = {ncclSum, ncclAvg, ncclMax};
  return kOps[static_cast<std::size_t>(op)];
}

// Calls that NCCL starts at once. A failed call must not leave the thread in the middle of one.
class GroupCall {
 public:
  GroupCall() { check(nccl().group_start(), "ncclGroupStart"); }
  ~GroupCall() {
    if (is_open_) nccl().group_end();
  }
  GroupCall(const GroupCall&) = delete;
  GroupCall& operator=(const GroupCall&) = delete;
  void end() {
    is_open_ = false;
    check_started(nccl().group_end(), "ncclGroupEnd");
  }

 private:
  bool is_open_ = true;
};

void enqueue(ncclComm_t communicator, const Call& call, const Segment& segment, Stream stream) {
  const auto& [source, destination] = segment;
  const ncclDataType_t type = type_of(source.dtype);
  const auto from = static_cast<std::size_t>(source.count());
  ncclResult_t status = ncclSuccess;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      status = nccl().all_reduce(source.data, destination.data, from, type, op_of(call.op),
                                 communicator, stream);
      break;
    case CollectiveKind::reduce_scatter:
      status = nccl().reduce_scatter(source.data, destination.data,
                                     static_cast<std::size_t>(destination.count()), type,
                                     op_of(call.op), communicator, stream);
      break;
    case CollectiveKind::all_gather:
      status = nccl().all_gather(source.data, destination.data, from, type, communicator, stream);
      break;
    case CollectiveKind::broadcast:
      status = nccl().broadcast(source.data, destination.data, from, type, 0, communicator, stream);
      break;
    case CollectiveKind::all_to_all:
      break;  // all_to_all()
  }
  check_started(status, describe(call));
}

void send(const TensorView& tensor, int peer, ncclComm_t communicator, Stream stream) {
  check_started(nccl().send(tensor.data, static_cast<std::size_t>(tensor.count()),
                            type_of(tensor.dtype), peer, communicator, stream),
                "ncclSend");
}

void receive(const TensorView& tensor, int peer, ncclComm_t communicator, Stream stream) {
  check_started(nccl().receive(tensor.data, static_cast<std::size_t>(tensor.count()),
                               type_of(tensor.dtype), peer, communicator, stream),
                "ncclRecv");
}

// Within a group all sends and receives are under way at once.
void all_to_all(ncclComm_t communicator, int ranks, const Segment& segment, Stream stream) {
  const std::int64_t chunk = segment.source.count() / ranks;
  for (int peer = 0; peer < ranks; ++peer) {
    send(segment.source.flat(peer * chunk, chunk), peer, communicator, stream);
    receive(segment.destination.flat(peer * chunk, chunk), peer, communicator, stream);
  }
}

}  // namespace

void check(ncclResult_t status, const std::string& call) {
  if (status == ncclSuccess) return;
  throw Error(ErrorCode::failed, call + ": " + nccl().error_string(status));
}

void check_started(ncclResult_t status, const std::string& call) {
  if (status != ncclInProgress) check(status, call);
}

void call_nccl(ncclComm_t communicator, int ranks, const Call& call, Stream stream) {
  GroupCall group;
  for (const Segment& segment : call.segments) {
    if (call.kind == CollectiveKind::all_to_all) {
      all_to_all(communicator, ranks, segment, stream);
    } else {
      enqueue(communicator, call, segment, stream);
    }
  }
  group.end();
}

void call_nccl(ncclComm_t communicator, std::span<const Message> messages, Stream stream) {
  GroupCall group;
  for (const Message& message : messages) {
    (message.sends ? send : receive)(message.tensor, message.peer, communicator, stream);
  }
  group.end();
}

WatchedCall watch_call(const std::string& call, std::chrono::milliseconds timeout) {
  return {timeout + std::chrono::seconds(1), [call, timeout] {
            return call + " has not returned within " + std::to_string(timeout.count()) +
                   " ms: ending this process";
          }};
}

}  // namespace zl::cuda
