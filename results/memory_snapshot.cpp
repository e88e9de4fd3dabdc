#include "results/memory_snapshot.h"

#include <algorithm>
#include <map>
#include <vector>

#include "results/pickle.h"

namespace zl {
namespace {

struct Range {
  std::int64_t begin = 0, end = 0;
};

using Live = std::map<std::int64_t, const TraceEvent*>;  // by address

bool is_block(const TraceEvent& event) {
  return (event.type == EventType::allocate || event.type == EventType::free) &&
         event.space == MemorySpace::device && event.bytes_written > 0;
}

std::vector<Range> neighbouring_ranges(const Trace& trace) {
  std::vector<Range> blocks, ranges;
  for (const TraceEvent& event : trace.events()) {
    if (is_block(event)) blocks.push_back({event.id, event.id + event.bytes_written});
  }
  std::sort(blocks.begin(), blocks.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (const Range& block : blocks) {
    if (ranges.empty() || block.begin > ranges.back().end) ranges.push_back(block);
    ranges.back().end = std::max(ranges.back().end, block.end);
  }
  return ranges;
}

// `block`: the allocation that says what the memory is for; nullptr: nothing known.
void write_frames(PickleWriter& out, const TraceEvent* block) {
  out.key("frames");
  out.begin_list();
  if (block != nullptr) {
    const Scope& scope = block->scope;
    const char* tag = name_of(static_cast<MemoryTag>(block->kind));
    out.begin_dict();
    out.item("filename", "step " + std::to_string(scope.step) + ", " + name_of(scope.phase));
    out.item("line", scope.unit);
    out.item("name", std::string(tag) + " '" + block->what + "'");
    out.end();
  }
  out.end();
}

// `block`: nullptr for a segment.
void write_action(PickleWriter& out, const char* action, const Range& range, std::int64_t time_ns,
                  const TraceEvent* block) {
  out.begin_dict();
  out.item("action", std::string_view(action));
  out.item("addr", range.begin);
  out.item("size", range.end - range.begin);
  out.item("stream", 0);
  out.item("time_us", time_ns / 1000);
  // The page breaks off at categories without this one.
  out.item("category",
           std::string_view(block ? name_of(static_cast<MemoryTag>(block->kind)) : "unknown"));
  write_frames(out, block);
  out.end();
}

Live write_trace(PickleWriter& out, const Trace& trace, const std::vector<Range>& segments) {
  Live live;
  for (const Range& segment : segments) write_action(out, "segment_alloc", segment, 0, nullptr);
  for (const TraceEvent& event : trace.events()) {
    if (!is_block(event)) continue;
    const Range range{event.id, event.id + event.bytes_written};
    const std::int64_t time = event.timing.start_ns;
    if (event.type == EventType::allocate) {
      live[event.id] = &event;
      write_action(out, "alloc", range, time, &event);
      continue;
    }
    const auto found = live.find(event.id);
    const TraceEvent* block = found != live.end() ? found->second : &event;
    write_action(out, "free_requested", range, time, block);
    write_action(out, "free_completed", range, time, block);
    if (found != live.end()) live.erase(found);
  }
  return live;
}

void write_block(PickleWriter& out, const Range& range, const TraceEvent* block) {
  out.begin_dict();
  out.item("address", range.begin);
  out.item("size", range.end - range.begin);
  out.item("requested_size", range.end - range.begin);
  out.item("state", std::string_view(block ? "active_allocated" : "inactive"));
  write_frames(out, block);
  out.end();
}

// Live blocks and the holes between them. Returns the live bytes.
std::int64_t write_blocks(PickleWriter& out, const Range& segment, const Live& live) {
  std::int64_t at = segment.begin, active = 0;
  out.key("blocks");
  out.begin_list();
  for (auto each = live.lower_bound(segment.begin); each != live.end() && each->first < segment.end;
       ++each) {
    const Range range{each->first, each->first + each->second->bytes_written};
    if (range.begin > at) write_block(out, {at, range.begin}, nullptr);
    write_block(out, range, each->second);
    active += range.end - range.begin;
    at = range.end;
  }
  if (at < segment.end) write_block(out, {at, segment.end}, nullptr);
  out.end();
  return active;
}

void write_segment(PickleWriter& out, int device, const Range& segment, const Live& live) {
  out.begin_dict();
  out.item("device", device);
  out.item("address", segment.begin);
  out.item("total_size", segment.end - segment.begin);
  out.item("stream", 0);
  out.item("segment_type", std::string_view("large"));
  out.key("segment_pool_id");
  out.pair(0, 0);
  out.key("is_expandable");
  out.truth(false);
  write_frames(out, nullptr);
  const std::int64_t active = write_blocks(out, segment, live);
  for (const char* size : {"allocated_size", "active_size", "requested_size"}) {
    out.item(size, active);
  }
  out.end();
}

}  // namespace

std::string memory_snapshot(const Trace& trace) {
  const Trace* one = &trace;
  return memory_snapshot(std::span(&one, 1));
}

std::string memory_snapshot(std::span<const Trace* const> ranks) {
  std::vector<std::vector<Range>> segments;
  std::vector<Live> live;
  PickleWriter out;
  out.begin_dict();
  out.key("device_traces");
  out.begin_list();
  for (const Trace* trace : ranks) {
    segments.push_back(neighbouring_ranges(*trace));
    out.begin_list();
    live.push_back(write_trace(out, *trace, segments.back()));
    out.end();
  }
  out.end();
  out.key("segments");
  out.begin_list();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (const Range& segment : segments[i]) {
      write_segment(out, static_cast<int>(i), segment, live[i]);
    }
  }
  out.end();
  out.end();
  return out.finish();
}

}  // namespace zl
