// Messages among the processes that an MPI launcher started, as the communicator needs them.
// Ownership: MPI starts with the first call of processes() and ends with the program. Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace zl::mpi {

struct Processes {
  int rank = 0, count = 1;
  int local = 1;  // of this node
  std::int64_t machine_memory =
      0;  // of this node, when MPI started: the least that one of them saw
};
// Error{unavailable} when MPI cannot be called from several threads.
const Processes& processes();

// Messages of one channel do not meet those of another.
inline constexpr int kChannels = 8;

// Every process calls it before a run: what was sent in an earlier one and never taken is not taken
// for a message of this one.
void begin_run();

// Ends every process of the job at once.
[[noreturn]] void abort(int exit_code);

// Messages under way on one channel; between two processes they arrive in the order of their calls.
// The memory must stay as it is until done() or the end of the object, which takes back what has
// not arrived.
class Requests {
 public:
  explicit Requests(int channel);
  ~Requests();
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  void send(int to, const void* data, std::int64_t bytes);
  void receive(int from, void* data, std::int64_t bytes);
  // Whether all have arrived; also makes them move.
  bool done();
  // Who has not sent, once each, in order of rank.
  std::vector<int> missing() const;
  std::int64_t sent() const { return sent_; }  // bytes that were handed to MPI for others

 private:
  struct Pending;
  void add(int peer, bool receives, void* data, std::int64_t bytes);

  int channel_;
  std::int64_t sent_ = 0;
  std::unique_ptr<Pending> pending_;
};

}  // namespace zl::mpi
