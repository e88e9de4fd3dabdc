#include "simulator/planner/program_reader.h"

#include <algorithm>
#include <utility>

namespace zl::sim {
namespace {

StreamId stream_of(const TraceEvent& event) { return static_cast<StreamId>(event.stream); }

bool is_work_of(const PassWork& work, StreamId stream) {
  return work.kind == PassWork::Kind::work && work.stream == stream && !work.copies;
}

}  // namespace

ProgramReader::ProgramReader(const Trace& trace, const ClusterSpec& cluster, int rank,
                             LateReductions late)
    : model_(cluster, rank), is_host_(cluster.compute_is_host), late_(std::move(late)) {
  std::int64_t before = -1;  // the event before, where it is a record
  for (const TraceEvent& event : trace.events()) {
    const bool at_once = event.type == EventType::wait && event.id == before;
    before = event.type == EventType::record ? event.id : -1;
    if (event.type != EventType::wait) continue;
    Record& own = records_[event.id];
    if (is_of_message(event)) {
      own.is_sent = true;
    } else {
      ++own.waits;
      own.is_followed = at_once && own.waits == 1;
    }
  }
}

std::int64_t ProgramReader::time_of(const TraceEvent& event, EventTime time) const {
  if (is_host_) return time.end - time.start;
  const Price price = model_.price(event);
  return std::max(price.picoseconds, price.link_picoseconds);
}

bool ProgramReader::add(const TraceEvent& event, EventTime time, std::vector<PassWork>& into) {
  if (event.type == EventType::record) record(event, into);
  if (event.type == EventType::wait) return wait(event, into);
  if (takes_time(event) && event.type != EventType::message) work(event, time, into);
  return false;
}

void ProgramReader::record(const TraceEvent& event, std::vector<PassWork>& into) {
  Record& own = records_[event.id];
  own.stream = stream_of(event);
  if (own.is_sent) into.push_back({.kind = PassWork::Kind::made, .stream = own.stream});
  if (own.waits == 0 || own.is_followed) {
    own.number = 0;
    return;
  }
  own.number = recorded_[event.stream]++;
  into.push_back({.kind = PassWork::Kind::record, .stream = own.stream});
}

bool ProgramReader::wait(const TraceEvent& event, std::vector<PassWork>& into) {
  const Record& of = records_[event.id];
  if (late_.ignores(event)) return false;
  if (of.number < 0) return true;
  PassWork work{.kind = PassWork::Kind::follow, .stream = stream_of(event), .other = of.stream};
  if (!of.is_followed) {
    const std::int64_t back = recorded_[static_cast<std::size_t>(of.stream)] - 1 - of.number;
    if (back >= static_cast<std::int64_t>(kKeptRecords)) return false;  // long complete
    work.kind = PassWork::Kind::wait;
    work.back = static_cast<std::uint8_t>(back);
  }
  into.push_back(work);
  return false;
}

void ProgramReader::work(const TraceEvent& event, EventTime took, std::vector<PassWork>& into) {
  const StreamId stream = stream_of(event);
  const std::int64_t time = time_of(event, took);
  if (time == 0) return;
  const bool copies = event.type == EventType::collective &&
                      event.axis == static_cast<std::uint8_t>(Axis::replicate);
  // Nothing of another stream comes between.
  const bool stalled = !into.empty() && into.back().kind == PassWork::Kind::stall;
  const std::size_t before = into.size() - (stalled ? 1 : 0);
  if (!copies && before > 0 && is_work_of(into[before - 1], stream)) {
    into[before - 1].time += time;
    return;
  }
  into.push_back({.stream = stream, .copies = copies, .time = time});
}

void ProgramReader::stall(std::int64_t time, std::vector<PassWork>& into) {
  if (time <= 0) return;
  if (!into.empty() && into.back().kind == PassWork::Kind::stall) {
    into.back().time += time;
    return;
  }
  into.push_back({.kind = PassWork::Kind::stall, .time = time});
}

}  // namespace zl::sim
