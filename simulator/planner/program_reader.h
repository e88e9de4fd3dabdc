// Makes programs of recorded passes, event by event: what of them keeps a stream busy, or waits for
// another. Ownership: refers to the cluster. Threads: used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "core/trace/trace.h"
#include "simulator/cost/price.h"
#include "simulator/late_reductions.h"
#include "simulator/planner/pass_program.h"
#include "simulator/timeline.h"

namespace zl::sim {

class ProgramReader {
 public:
  ProgramReader(const Trace& trace, const ClusterSpec& cluster, int rank, LateReductions late);

  // Picoseconds that the event takes if nothing disturbs it; as it was priced, where all streams
  // share the host.
  std::int64_t time_of(const TraceEvent& event, EventTime time) const;
  // An event of a pass. Whether it waits for what is of no pass.
  bool add(const TraceEvent& event, EventTime time, std::vector<PassWork>& into);
  // The compute stream stands still in a pass: it waits for what is of no pass, or for the host.
  static void stall(std::int64_t time, std::vector<PassWork>& into);

 private:
  struct Record {
    StreamId stream = StreamId::compute;
    std::int64_t number = -1;  // of its stream's, of passes; negative: not come to
    int waits = 0;             // of streams, messages left out
    bool is_followed = false;  // by its one wait, at once
    bool is_sent = false;      // a message waits for it
  };

  void record(const TraceEvent& event, std::vector<PassWork>& into);
  bool wait(const TraceEvent& event, std::vector<PassWork>& into);
  void work(const TraceEvent& event, EventTime time, std::vector<PassWork>& into);

  CostModel model_;
  bool is_host_;
  std::unordered_map<std::int64_t, Record> records_;  // by event id
  std::array<std::int64_t, kStreams> recorded_{};
  LateReductions late_;
};

}  // namespace zl::sim
