// NCCL without GPUs: what loads the library in the backend (backends/cuda/nccl_library.h) gives
// these functions here. As of NCCL 2.28: calls of a group are launched together when it ends; those
// of a non-blocking communicator later, and it is in progress until then (here: until the caller
// has asked for its state a few times), as it is until all ranks have joined; any other call
// meanwhile is refused. Launches of one communicator run in their order on whatever streams. A
// communicator that was finalized is in progress until what it has launched has ended, and then it
// can only be destroyed. One that was aborted or destroyed is refused, and so are two ranks on one
// GPU, memory that the GPU does not reach, a stream of another GPU, and a split while launches are
// under way. What ranks launch must fit together, or every rank's state says so (on GPUs they would
// hang).
#include "backends/cuda/nccl_library.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>

#include "tests/cuda_fake/fake.h"
#include "tests/cuda_fake/nccl_clique.h"
#include "tests/cuda_fake/runtime.h"

struct ncclComm {
  struct Group {
    zl::cuda::fake::Launch calls;
    cudaStream_t stream = nullptr;
  };

  std::shared_ptr<zl::cuda::fake::Clique> clique;
  int rank = 0, device = 0;
  bool is_blocking = true;
  Group open;                   // of the group that the caller has begun
  std::deque<Group> pending;    // taken over, not launched yet
  int questions = 0;            // about its state, since something became pending
  bool is_final = false;        // finalized: it takes no calls any more
  ncclComm_t* split = nullptr;  // where the caller wants what it is split into
};

namespace zl::cuda {
namespace {

using namespace fake;

constexpr int kQuestions = 3;  // that a pending launch lasts

std::mutex mutex;  // guards the two below
std::map<std::string, std::shared_ptr<Clique>> cliques;
// Communicators by their handles, which are never used twice: a dead one is known as such.
std::map<ncclComm_t, std::unique_ptr<ncclComm>> communicators, dead;

std::atomic<NcclEnd> hanging{NcclEnd::none};

thread_local int depth = 0;  // of groups
thread_local std::set<ncclComm_t> in_group;
thread_local ncclResult_t group_error = ncclSuccess;

bool is_alive(ncclComm_t communicator) {
  const std::lock_guard lock(mutex);
  return communicators.contains(communicator);
}

void launch(ncclComm& mine, ncclComm::Group group) {
  const std::int64_t number = mine.clique->take_number(mine.rank);
  count_launch();
  fake::enqueue(group.stream,
                [clique = mine.clique, rank = mine.rank, number, calls = std::move(group.calls)] {
                  clique->run(rank, number, calls);
                });
}

// False: other ranks have not called it yet.
bool finish_split(ncclComm& mine) {
  const auto place = mine.clique->take_split(mine.rank);
  if (!place) return false;
  auto made = std::make_unique<ncclComm>();
  std::tie(made->clique, made->rank) = *place;
  made->device = mine.device;
  made->is_blocking = false;
  made->clique->join(made->rank, made->device);
  *std::exchange(mine.split, nullptr) = made.get();
  const std::lock_guard lock(mutex);
  communicators[made.get()] = std::move(made);
  return true;
}

ncclResult_t state_of(ncclComm& mine) {
  if (!mine.clique->is_complete()) return ncclInProgress;
  if (mine.split != nullptr && !finish_split(mine)) return ncclInProgress;
  if (!mine.pending.empty()) {
    if (++mine.questions <= kQuestions) return ncclInProgress;
    for (ncclComm::Group& each : mine.pending) launch(mine, std::move(each));
    mine.pending.clear();
  }
  if (mine.is_final && (hanging == NcclEnd::finalize || !mine.clique->is_idle(mine.rank))) {
    return ncclInProgress;
  }
  return mine.clique->error();
}

// Whether it takes calls.
bool is_usable(ncclComm_t communicator) {
  return is_alive(communicator) && !communicator->is_final &&
         state_of(*communicator) == ncclSuccess;
}

ncclResult_t get_version(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  static std::atomic<int> made{0};
  *id = {};
  const std::string text = "id " + std::to_string(++made);
  std::memcpy(id->internal, text.data(), text.size());
  return ncclSuccess;
}

ncclResult_t init_rank(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                       ncclConfig_t* config) {
  if (rank < 0 || rank >= ranks || config->magic != 0xcafebeef) return ncclInvalidArgument;
  if (begin() != cudaSuccess) return ncclUnhandledCudaError;
  const std::lock_guard lock(mutex);
  auto& clique = cliques[id.internal];
  if (clique == nullptr) clique = std::make_shared<Clique>(ranks);
  if (clique->ranks() != ranks) return ncclInvalidArgument;
  if (!clique->join(rank, current_device())) return ncclInvalidUsage;
  auto made = std::make_unique<ncclComm>();
  made->clique = clique;
  made->rank = rank;
  made->device = current_device();
  made->is_blocking = config->blocking != 0;
  if (made->is_blocking) return ncclInvalidUsage;  // the backend has none
  *communicator = made.get();
  communicators[made.get()] = std::move(made);
  return ncclInProgress;
}

ncclResult_t split(ncclComm_t parent, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  if (!is_usable(parent)) return ncclInvalidArgument;
  if (color < 0 || config->magic != 0xcafebeef || config->blocking != 0) return ncclInvalidArgument;
  if (!parent->clique->is_idle(parent->rank)) return ncclInvalidUsage;  // GPUs may hang
  if (begin() != cudaSuccess) return ncclUnhandledCudaError;
  *made = nullptr;
  parent->split = made;
  parent->clique->offer_split(parent->rank, color, key);
  return ncclInProgress;
}

ncclResult_t rank_of(const ncclComm_t communicator, int* rank) {
  if (!is_alive(communicator)) return ncclInvalidArgument;
  *rank = communicator->rank;
  return ncclSuccess;
}

ncclResult_t size_of_communicator(const ncclComm_t communicator, int* size) {
  if (!is_alive(communicator)) return ncclInvalidArgument;
  *size = communicator->clique->ranks();
  return ncclSuccess;
}

ncclResult_t async_error(ncclComm_t communicator, ncclResult_t* state) {
  if (!is_alive(communicator)) return ncclInvalidArgument;
  *state = state_of(*communicator);
  return ncclSuccess;
}

void bury(ncclComm_t communicator) {
  const std::lock_guard lock(mutex);
  dead.insert(communicators.extract(communicator));
}

void hang_in(NcclEnd call) {
  while (hanging == call) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

ncclResult_t finalize(ncclComm_t communicator) {
  if (!is_usable(communicator)) return ncclInvalidArgument;
  communicator->is_final = true;
  return ncclInProgress;
}

ncclResult_t abort_communicator(ncclComm_t communicator) {
  hang_in(NcclEnd::abort);
  if (!is_alive(communicator)) return ncclInvalidArgument;
  communicator->clique->abort(communicator->rank);
  bury(communicator);
  return ncclSuccess;
}

// Launches that are under way go on: the last rank to destroy waits for all.
ncclResult_t destroy_communicator(ncclComm_t communicator) {
  hang_in(NcclEnd::destroy);
  if (!is_alive(communicator)) return ncclInvalidArgument;
  if (state_of(*communicator) == ncclInProgress) return ncclInvalidArgument;
  bury(communicator);
  return ncclInProgress;
}

const char* error_string(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclInProgress:
      return "in progress";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    default:
      return "an error of the fake NCCL";
  }
}

ncclResult_t start_group() {
  ++depth;
  return ncclSuccess;
}

ncclResult_t end_group() {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0) return ncclSuccess;
  const ncclResult_t error = std::exchange(group_error, ncclSuccess);
  for (const ncclComm_t each : std::exchange(in_group, {})) {
    ncclComm::Group group = std::exchange(each->open, {});
    if (error != ncclSuccess) continue;
    each->pending.push_back(std::move(group));
    each->questions = 0;
  }
  return error == ncclSuccess ? ncclInProgress : error;
}

ncclResult_t check(ncclComm_t communicator, const Transfer& call, cudaStream_t stream) {
  if (!is_usable(communicator)) return ncclInvalidArgument;
  const int ranks = communicator->clique->ranks();
  const auto [reads, writes] = spans(call, static_cast<std::size_t>(ranks));
  const bool reached = gpu_reaches(call.source, static_cast<std::int64_t>(reads)) &&
                       gpu_reaches(call.destination, static_cast<std::int64_t>(writes));
  if (!reached || call.peer < 0 || call.peer >= ranks) return ncclInvalidArgument;
  if (device_of(stream) != communicator->device) return ncclInvalidUsage;
  if (begin() != cudaSuccess) return ncclUnhandledCudaError;
  const cudaStream_t others = communicator->open.stream;
  return others == nullptr || others == stream ? ncclSuccess : ncclInvalidUsage;
}

ncclResult_t add(ncclComm_t communicator, const Transfer& call, cudaStream_t stream) {
  start_group();
  const ncclResult_t status = check(communicator, call, stream);
  if (status == ncclSuccess) {
    communicator->open.calls.push_back(call);
    communicator->open.stream = stream;
    in_group.insert(communicator);
  } else {
    group_error = status;
  }
  const ncclResult_t ended = end_group();
  return status == ncclSuccess ? ended : status;
}

ncclResult_t all_reduce(const void* source, void* destination, std::size_t count,
                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t communicator,
                        cudaStream_t stream) {
  return add(communicator, {Kind::all_reduce, source, destination, count, type, op, 0}, stream);
}
ncclResult_t reduce_scatter(const void* source, void* destination, std::size_t count,
                            ncclDataType_t type, ncclRedOp_t op, ncclComm_t communicator,
                            cudaStream_t stream) {
  return add(communicator, {Kind::reduce_scatter, source, destination, count, type, op, 0}, stream);
}
ncclResult_t all_gather(const void* source, void* destination, std::size_t count,
                        ncclDataType_t type, ncclComm_t communicator, cudaStream_t stream) {
  return add(communicator, {Kind::all_gather, source, destination, count, type, ncclSum, 0},
             stream);
}
ncclResult_t broadcast(const void* source, void* destination, std::size_t count,
                       ncclDataType_t type, int root, ncclComm_t communicator,
                       cudaStream_t stream) {
  return add(communicator, {Kind::broadcast, source, destination, count, type, ncclSum, root},
             stream);
}
ncclResult_t send(const void* source, std::size_t count, ncclDataType_t type, int peer,
                  ncclComm_t communicator, cudaStream_t stream) {
  return add(communicator, {Kind::send, source, nullptr, count, type, ncclSum, peer}, stream);
}
ncclResult_t receive(void* destination, std::size_t count, ncclDataType_t type, int peer,
                     ncclComm_t communicator, cudaStream_t stream) {
  return add(communicator, {Kind::receive, nullptr, destination, count, type, ncclSum, peer},
             stream);
}

Nccl make_table() {
  Nccl table{};
  table.get_version = get_version;
  table.get_unique_id = get_unique_id;
  table.init_rank = init_rank;
  table.split = split;
  table.rank_of = rank_of;
  table.size_of = size_of_communicator;
  table.finalize = finalize;
  table.destroy = destroy_communicator;
  table.abort = abort_communicator;
  table.async_error = async_error;
  table.error_string = error_string;
  table.group_start = start_group;
  table.group_end = end_group;
  table.all_reduce = all_reduce;
  table.reduce_scatter = reduce_scatter;
  table.all_gather = all_gather;
  table.broadcast = broadcast;
  table.send = send;
  table.receive = receive;
  return table;
}

}  // namespace

namespace fake {

NcclHangs::NcclHangs(NcclEnd in) { hanging = in; }
NcclHangs::~NcclHangs() { hanging = NcclEnd::none; }

}  // namespace fake

const Nccl& nccl() {
  static const Nccl table = make_table();
  return table;
}

}  // namespace zl::cuda
