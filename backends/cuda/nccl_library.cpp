#include "backends/cuda/nccl_library.h"

#include <string>

#include "backends/cuda/library.h"
#include "core/base/error.h"

namespace zl::cuda {
namespace {

constexpr int kOldest = 21800;

Nccl load() {
  const SharedLibrary library("NCCL", "libnccl.so.2",
                              "install libnccl2 (NVIDIA's package) or the Python package "
                              "nvidia-nccl-cu13, or put its folder "
                              "in LD_LIBRARY_PATH");
  Nccl all{};
  library.bind(all.get_version, "ncclGetVersion");
  int version = 0;
  all.get_version(&version);
  if (version < kOldest) {
    throw Error(ErrorCode::unavailable, "NCCL: " + library.path() + " is version " +
                                            std::to_string(version) + ", at least " +
                                            std::to_string(kOldest) + " (2.18) is needed");
  }
  library.bind(all.get_unique_id, "ncclGetUniqueId");
  library.bind(all.init_rank, "ncclCommInitRankConfig");
  library.bind(all.split, "ncclCommSplit");
  library.bind(all.rank_of, "ncclCommUserRank");
  library.bind(all.size_of, "ncclCommCount");
  library.bind(all.finalize, "ncclCommFinalize");
  library.bind(all.destroy, "ncclCommDestroy");
  library.bind(all.abort, "ncclCommAbort");
  library.bind(all.async_error, "ncclCommGetAsyncError");
  library.bind(all.error_string, "ncclGetErrorString");
  library.bind(all.group_start, "ncclGroupStart");
  library.bind(all.group_end, "ncclGroupEnd");
  library.bind(all.all_reduce, "ncclAllReduce");
  library.bind(all.reduce_scatter, "ncclReduceScatter");
  library.bind(all.all_gather, "ncclAllGather");
  library.bind(all.broadcast, "ncclBroadcast");
  library.bind(all.send, "ncclSend");
  library.bind(all.receive, "ncclRecv");
  return all;
}

}  // namespace

const Nccl& nccl() {
  static const Nccl loaded = load();
  return loaded;
}

}  // namespace zl::cuda
