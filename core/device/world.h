// A world is the ranks of one backend; the registry maps backend names to worlds, or to the reason
// why there is none. Ownership: the world owns devices and communicators. Threads: World::run
// starts one thread per real rank and joins them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device/communicator.h"
#include "core/device/device.h"

namespace zl {

struct WorldOptions {
  int ranks = 1;
  // 0: OMP_NUM_THREADS, where that is set; else the machine's cores divided by ranks, at least 1.
  int threads_per_rank = 0;
  // Same bits run to run, for every ZeRO stage and recomputation. Where `false`, devices that have
  // faster ways (CUDA) take them.
  bool deterministic = true;
  // Bytes a second that one rank sends at most: a collective lasts at least its wire bytes over
  // this. 0: as fast as it goes. The cpu and the recording backend only.
  double link_bandwidth = 0;
  // Of the cpu backend: "threads" of this process, or "mpi" for the processes of an MPI launcher.
  std::string communicator = "threads";
  // How long a rank waits for ranks that do not come, or for bytes of which none arrives; 0: for
  // ever.
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(1);
};

// collective_timeout as a time that clocks can add to.
std::chrono::milliseconds patience(const WorldOptions& options);

// How many threads each of `ranks` ranks of this machine takes: what the options or the environment
// say, or its share of the processors.
int threads_per_rank(const WorldOptions& options, int ranks);

struct RankHandle {
  Device& device;
  Communicator& communicator;
};

class World {
 public:
  virtual ~World() = default;
  virtual int ranks() const = 0;
  // How many ranks run the program in this process: all of them as threads, or one where each rank
  // is a process of a launched job, or where one represents them all.
  virtual int executed_ranks() const = 0;
  // Whether the ranks that run stand for the others: their ops are recorded, not computed.
  virtual bool is_recording() const { return false; }
  // Calls `program` once per executed rank, concurrently, and returns when all have ended. When a
  // rank throws, the others are released from their collectives and the first error is rethrown.
  virtual void run(const std::function<void(RankHandle)>& program) = 0;
  // Of the runs that follow: whether all ranks work at the same time, as they do without a
  // pipeline. Such that outnumber the cores of their machine may share them out (keep_to_core);
  // where some wait for long, the others are to have all cores.
  void expect_all_at_work(bool all) { all_at_work_ = all; }

 protected:
  bool all_at_work_ = false;
};

// What its ranks compute on besides the processor.
struct Accelerator {
  std::string name, driver;
};

// What callers may ask of a backend, so that nobody compares its name.
struct BackendCapabilities {
  bool is_recording = false;          // predicts: takes no steps, has no losses and no weights
  bool takes_link_bandwidth = false;  // WorldOptions::link_bandwidth
  bool takes_processes = false;       // WorldOptions::communicator "mpi"
  bool joins_launches = false;        // in a launched job its ranks are the processes by themselves
  // The cluster that `zerolab calibrate` measures with it; empty: none, it runs nowhere.
  std::string cluster = {};
  // Dense peak of all devices of a run on this machine, FLOP/s; 0: unknown.
  std::function<double(int ranks, DType dtype)> peak_flops = {};
  // What one rank of a run on this machine can use; none: what the cluster says.
  std::function<DeviceProperties(int ranks)> device = {};
  std::function<Accelerator()> accelerator = {};  // none: the processor
};

using WorldFactory = std::function<std::unique_ptr<World>(const WorldOptions&)>;

// Filled by the composition root (scenarios/runner); no backend knows another.
class BackendRegistry {
 public:
  // Says why a backend cannot run on this machine; "" when it can.
  using Reason = std::function<std::string()>;

  // `missing` is asked only when somebody wants to know: looking for hardware takes time.
  void add(const std::string& name, WorldFactory factory, Reason missing = {},
           BackendCapabilities capabilities = {}) {
    entries_[name] = {std::move(factory), std::move(missing), std::move(capabilities)};
  }
  std::vector<std::string> names() const;  // available ones, sorted
  std::map<std::string, std::string> missing() const;
  // Error{unavailable} with the reason for a missing backend; Error{usage} with the list for an
  // unknown one.
  std::unique_ptr<World> make(const std::string& name, const WorldOptions& options) const;
  // Also of a missing backend. Error{usage} for an unknown one.
  const BackendCapabilities& capabilities(const std::string& name) const;

 private:
  struct Entry {
    WorldFactory factory;
    Reason missing;
    BackendCapabilities capabilities;
    std::string why_missing() const { return missing ? missing() : ""; }
  };
  const Entry& find(const std::string& name) const;

  std::map<std::string, Entry> entries_;
};

}  // namespace zl
