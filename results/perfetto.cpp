#include "results/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/base/stream.h"
#include "simulator/json/reading.h"

namespace zl {
namespace {

constexpr int kNoTrack = 0;  // of what belongs to the whole process; streams come after it

constexpr int kWorkTrack = 1 + static_cast<int>(kStreams);

int track_of(const TraceEvent& event) { return 1 + event.stream; }

bool is_slice(const TraceEvent& event) { return takes_time(event) && event.timing.end_ns > 0; }

std::string quoted(const std::string& text) { return to_text(Json(text)); }

std::string microseconds(std::int64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

// Writes the events of one process.
class Process {
 public:
  Process(std::string& out, int id) : out_(out), id_(id) {}

  void write(const NamedTrace& named) {
    metadata("process_name", kNoTrack, named.name);
    EventCounts counts(*named.trace);
    std::size_t index = 0;
    for (const TraceEvent& event : named.trace->events()) {
      times_ = counts.of(index++);
      add(event);
    }
    for (const auto& [step, span] : steps_) {
      step_bound("b", step, span.start_ns);
      step_bound("e", step, span.end_ns);
    }
    if (!named.passes.empty()) micro_batches(named.passes);
  }

 private:
  void begin(const char* type, int track, std::int64_t time) {
    if (out_.back() == '}') out_ += ",\n";
    out_ += fmt::format(R"({{"ph":"{}","pid":{},"tid":{},"ts":{})", type, id_, track,
                        microseconds(time));
  }

  // A step may begin before the one before it has ended (its gathers run ahead): slices that
  // overlap on a track are dropped by readers, asynchronous ones, each with its own id, are not.
  void step_bound(const char* type, std::int32_t step, std::int64_t time) {
    begin(type, kNoTrack, time);
    out_ += fmt::format(R"(,"cat":"step","id":"{}.step{}","name":"{}"}})", id_, step,
                        step == 0 ? "setup" : fmt::format("step {}", step));
  }

  // Boxes of the schedule: "forward 3".
  void micro_batches(std::span<const StagePass> passes) {
    metadata("thread_name", kWorkTrack, "micro-batches");
    for (const StagePass& pass : passes) {
      begin("X", kWorkTrack, pass.time.start_ns);
      out_ += fmt::format(
          R"(,"dur":{},"cat":"{}","name":"{} {}","args":{{"step":{},"micro":{},"chunk":{}}}}})",
          microseconds(pass.time.end_ns - pass.time.start_ns), name_of(pass.kind),
          name_of(pass.kind), pass.micro, pass.step, pass.micro, pass.chunk);
    }
  }

  void metadata(const char* what, int track, const std::string& name) {
    begin("M", track, 0);
    out_ += fmt::format(R"(,"name":"{}","args":{{"name":{}}}}})", what, quoted(name));
  }

  void add(const TraceEvent& event) {
    if (is_slice(event)) {
      slice(event);
    } else if (event.type == EventType::allocate || event.type == EventType::free) {
      memory(event);
    } else if (event.type == EventType::record) {
      recorded_[event.id] = last_[event.stream];
    } else if (event.type == EventType::wait) {
      const auto found = recorded_.find(event.id);
      if (found != recorded_.end() && found->second != nullptr &&
          found->second->stream != event.stream) {
        causes_[event.stream].push_back(found->second);
      }
    }
  }

  // For the ranks of a collective that had not come yet.
  static std::string waited(const Timing& time) {
    if (time.met_ns == 0) return "";
    return fmt::format(R"(,"waited_us":{})", microseconds(time.met_ns - time.start_ns));
  }

  void slice(const TraceEvent& event) {
    const Timing& time = event.timing;
    if (last_[event.stream] == nullptr) {
      metadata("thread_name", track_of(event), name_of(static_cast<StreamId>(event.stream)));
    }
    begin("X", track_of(event), time.start_ns);
    fmt::format_to(std::back_inserter(out_),
                   R"(,"dur":{},"cat":"{}","name":{},"args":{{"step":{},"unit":{},"dtype":"{}",)"
                   R"("flops":{},"bytes_read":{},"bytes_written":{},"wire_bytes":{}{}{}}}}})",
                   microseconds(time.end_ns - time.start_ns), name_of(event.scope.phase),
                   quoted(short_name(event)), event.scope.step, event.scope.unit,
                   name_of(event.dtype), event.flops, event.bytes_read, event.bytes_written,
                   event.wire_bytes, waited(time),
                   times_ > 1 ? fmt::format(R"(,"times":{})", times_) : "");
    for (const TraceEvent* cause : causes_[event.stream]) arrow(*cause, event);
    causes_[event.stream].clear();
    last_[event.stream] = &event;
    const auto [found, first] = steps_.try_emplace(event.scope.step, time);
    found->second.start_ns = std::min(found->second.start_ns, time.start_ns);
    found->second.end_ns = std::max(found->second.end_ns, time.end_ns);
  }

  void arrow(const TraceEvent& from, const TraceEvent& to) {
    const std::string name =
        fmt::format(R"(,"cat":"wait","name":"wait","id":"{}.{}")", id_, ++arrows_);
    begin("s", track_of(from), from.timing.start_ns);
    out_ += name + "}";
    begin("f", track_of(to), to.timing.start_ns);
    out_ += name + R"(,"bp":"e"})";
  }

  void memory(const TraceEvent& event) {
    const auto space = static_cast<std::size_t>(event.space);
    const bool takes = event.type == EventType::allocate;
    const std::int64_t change = takes ? event.bytes_written : -event.bytes_written;
    const std::string name = std::string(name_of(event.space)) + " memory";
    counter(name, event, total_[space] += change);
    counter(name + ": " + name_of(static_cast<MemoryTag>(event.kind)), event,
            by_tag_[space][event.kind] += change);
  }

  void counter(const std::string& name, const TraceEvent& event, std::int64_t value) {
    begin("C", kNoTrack, event.timing.start_ns);
    out_ += fmt::format(R"(,"name":"{}","args":{{"bytes":{}}}}})", name, value);
  }

  std::string& out_;
  int id_;
  std::map<std::int64_t, const TraceEvent*> recorded_;  // what a record came after
  std::array<const TraceEvent*, kStreams> last_{};
  std::array<std::vector<const TraceEvent*>, kStreams> causes_;  // of the next slice
  std::map<std::int32_t, Timing> steps_;
  std::array<std::int64_t, kMemorySpaces> total_{};
  std::array<std::array<std::int64_t, kMemoryTags>, kMemorySpaces> by_tag_{};
  std::int64_t arrows_ = 0;
  std::int64_t times_ = 1;  // that the event came, of which the first is shown
};

// One end of an arrow between processes, which are numbered from 1.
std::string message_end(const char* type, std::size_t process, const TraceEvent& event,
                        std::int64_t time, std::size_t id) {
  return fmt::format(R"({{"ph":"{}","pid":{},"tid":{},"ts":{},"cat":"message","name":"message",)"
                     R"("id":"message{}")",
                     type, process + 1, track_of(event), microseconds(time), id);
}

// Behind all slices: readers attach an arrow to slices that they know. It ends where both messages
// are under way, for a receive may be posted long before what it waits for is sent.
void add_messages(std::span<const NamedTrace> traces, std::string& out) {
  std::size_t id = 0;
  for (std::size_t from = 0; from < traces.size(); ++from) {
    for (const SentMessage& message : traces[from].sent) {
      const std::size_t to = from + static_cast<std::size_t>(message.to);
      const TraceEvent& send = traces[from].trace->events()[std::size_t(message.sent)];
      const TraceEvent& receive = traces[to].trace->events()[std::size_t(message.received)];
      const std::int64_t start = send.timing.start_ns;
      const std::int64_t end = std::max(start, receive.timing.start_ns);
      if (!is_slice(send) || !is_slice(receive) || end >= receive.timing.end_ns) continue;
      out += ",\n" + message_end("s", from, send, start, ++id) + "}";
      out += ",\n" + message_end("f", to, receive, end, id) + R"(,"bp":"e"})";
    }
  }
}

}  // namespace

std::string perfetto_json(std::span<const NamedTrace> traces) {
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  int id = 0;
  for (const NamedTrace& named : traces) Process(out, ++id).write(named);
  add_messages(traces, out);
  return out + "\n]}\n";
}

}  // namespace zl
