// The functions of NCCL that collectives use, loaded at run time.
// Ownership: loaded once, for the life of the process. Threads: any.
#pragma once

#include <nccl.h>

namespace zl::cuda {

struct Nccl {
  decltype(&ncclGetVersion) get_version;
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommSplit) split;
  decltype(&ncclCommUserRank) rank_of;
  decltype(&ncclCommCount) size_of;
  decltype(&ncclCommFinalize) finalize;
  decltype(&ncclCommDestroy) destroy;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclAllReduce) all_reduce;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclBroadcast) broadcast;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
};

// Throws Error{unavailable} when the library cannot be loaded or is older than 2.18, the first with
// non-blocking communicators that can be split.
const Nccl& nccl();

}  // namespace zl::cuda
