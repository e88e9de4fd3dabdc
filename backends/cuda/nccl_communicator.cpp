#include "backends/cuda/nccl_communicator.h"

#include <cstdlib>
#include <exception>
#include <memory>

#include "backends/cuda/nccl_calls.h"
#include "backends/cuda/nccl_group.h"
#include "core/threads/call_text.h"

namespace zl::cuda {
namespace {

class NcclCommunicator : public Communicator {
 public:
  // rank: of the world.
  NcclCommunicator(NcclGroup& group, NcclGroup::Member& member, int rank, Device& device)
      : group_(group), member_(member), world_rank_(rank), device_(device) {}

  int rank() const override { return member_.rank; }
  int size() const override { return member_.ranks; }
  std::string link() const override { return "nccl"; }

  void run(StreamId stream, const Collective& collective, Timing* timing) override {
    check_collective(collective, size());
    const Call call = call_of(collective);
    enqueue(stream, "collective", describe(call), timing,
            [&](ncclComm_t communicator, Stream on) { call_nccl(communicator, size(), call, on); });
  }

  void exchange(StreamId stream, std::span<const Message> messages, Timing* timing) override {
    check_messages(messages, rank(), size());
    if (messages.empty())
      return device_.enqueue(
          stream, "no message", [](Stream) {}, timing);
    enqueue(stream, "exchange", describe(messages), timing,
            [&](ncclComm_t communicator, Stream on) { call_nccl(communicator, messages, on); });
  }

  std::unique_ptr<Communicator> split(int color, int key) override {
    ZL_CHECK(color >= 0, "the color of a group is 0 or more, not " + std::to_string(color));
    NcclGroup::Member& made = group_.split(world_rank_, member_, color, key);
    return std::make_unique<NcclCommunicator>(group_, made, world_rank_, device_);
  }

 protected:
  void close(bool has_failed) { group_.close(world_rank_, has_failed); }

 private:
  template <class Work>
  void enqueue(StreamId stream, const char* noun, const std::string& what, Timing* timing,
               const Work& work) {
    device_.enqueue(
        stream, what,
        [&](Stream on) {
          group_.call(world_rank_, member_, noun, what, on,
                      [&](ncclComm_t communicator) { work(communicator, on); });
        },
        timing);
  }

  NcclGroup& group_;
  NcclGroup::Member& member_;
  int world_rank_;
  Device& device_;
};

// The world's: with it all groups of its rank end.
class NcclWorldCommunicator final : public NcclCommunicator {
 public:
  using NcclCommunicator::NcclCommunicator;
  ~NcclWorldCommunicator() override { close(std::uncaught_exceptions() > 0); }
};

}  // namespace

std::unique_ptr<Communicator> NcclGroup::join(Device& device, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  Rank& mine = of(rank);
  const std::lock_guard lock(mine.mutex);
  mine.ordinal = device.ordinal();
  Member& member = mine.members.emplace_back();
  member.rank = rank;
  member.ranks = static_cast<int>(ranks_.size());
  const std::string what = "rank " + std::to_string(rank) + ", ncclCommInitRank";
  const WatchedCall watched = watch_call(what, timeout_);
  check_started(nccl().init_rank(&member.communicator, member.ranks, id_, rank, &config),
                "ncclCommInitRank");
  settle(rank, member, what);
  return std::make_unique<NcclWorldCommunicator>(*this, member, rank, device);
}

std::unique_ptr<RankGroup> make_nccl_process_group(const Launch& launch,
                                                   std::chrono::milliseconds timeout) {
  setenv("NCCL_COMM_ID", rendezvous(launch).c_str(), 1);  // read by ncclGetUniqueId on every rank
  return std::make_unique<NcclGroup>(launch.ranks, timeout);
}

std::unique_ptr<RankGroup> make_nccl_group(int ranks, std::chrono::milliseconds timeout) {
  return std::make_unique<NcclGroup>(ranks, timeout);
}

}  // namespace zl::cuda
