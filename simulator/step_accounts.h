// Adds up where each step's time goes, from when the events of a trace ran: as predicted, while its
// timeline is laid out, or as measured.
// Ownership: a value. Threads: used by one thread.
#pragma once

#include <array>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/trace/trace.h"
#include "simulator/cost/price.h"
#include "simulator/timeline.h"

namespace zl::sim {

class StepAccounts {
 public:
  // Work of any stream, in the order of each. What passed since the compute stream's work before is
  // exposed communication where a collective runs, an offload stall where only copies, files or the
  // host work, else host time, as far as these are known by then.
  void add(const TraceEvent& event, EventTime time);
  void add_price(const Price& price);

  // The step from `begin` to `end`. Its spread is what the prices say, or known_error when that is
  // above 0, and then the doubt about exposed copies and files, of which no error is known.
  StepPrice close(int step, std::int64_t begin, std::int64_t end, double host_spread,
                  double known_error);

 private:
  // The work of one stream, in order; asked about instants that never go back.
  class Busy {
   public:
    void add(EventTime time) { times_.push_back(time); }
    // Until when the stream works that works at `now`, or when it next starts; whether it works.
    std::pair<std::int64_t, bool> next(std::int64_t now);

   private:
    std::vector<EventTime> times_;
    std::size_t first_ = 0;  // that may end after `now`
  };

  void add_communication(EventTime time);
  void add_compute(EventTime time, std::int64_t StepPrice::*account);
  void fill_until(std::int64_t time);
  double spread(double host_spread) const;
  double spread_of_moves() const;

  StepPrice step_;
  std::int64_t covered_ = 0;  // up to here the compute stream's time is accounted for
  Busy communication_;
  std::array<Busy, kStreams> offload_;
  // Of this step's collectives, and of its copies and files; hidden or not.
  std::int64_t communicating_ = 0, moving_ = 0;
  std::array<double, kCostClasses> doubt_{};  // picoseconds of standard deviation by class
};

}  // namespace zl::sim
