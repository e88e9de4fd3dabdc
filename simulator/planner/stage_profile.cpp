#include "simulator/planner/stage_profile.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/stream.h"
#include "core/device/device.h"

namespace zl::sim {
namespace {

constexpr std::int32_t kProfiledStep = 2;

struct UnitPiece {
  int unit = -1;
  Segment segment;
};
using PassPieces = std::vector<UnitPiece>;

// What a recorded rank does in the profiled step.
struct StageFacts {
  std::array<PassPieces, kStagePasses> passes;
  std::int64_t held = 0, before_all = 0;
  std::int64_t slots = 0, slot_bytes = 0;
  std::int64_t message = 0;
  std::int64_t passes_begin = INT64_MAX, passes_before_end = 0;  // the latter of the step before
  std::int64_t step_end_peak = 0;
};

enum class ReadKind : std::uint8_t { forward, backward, weight, message, step };

bool is_ids(const TraceEvent& event) {
  constexpr std::string_view kIds[] = {"tokens", "targets", "segments", "lengths"};
  return std::ranges::find(kIds, std::string_view(event.what)) != std::end(kIds);
}

bool is_nested(Phase phase) {
  return phase == Phase::recompute || phase == Phase::gather || phase == Phase::reduce;
}

ReadKind kind_of(const Scope& scope, ReadKind before) {
  if (scope.micro < 0) return ReadKind::step;
  if (is_nested(scope.phase)) return before;
  if (scope.phase == Phase::forward) return ReadKind::forward;
  if (scope.phase == Phase::backward) return ReadKind::backward;
  return scope.phase == Phase::weight_gradient ? ReadKind::weight : ReadKind::message;
}

// Reads a trace event by event.
class StageReader {
 public:
  explicit StageReader(const RecordedStage& stage) : stage_(stage) {}

  StageFacts read() {
    const Trace& trace = *stage_.trace.trace;
    std::size_t index = 0;
    for (const TraceEvent& event : trace.events()) {
      const EventTime time = stage_.timeline->events[index++];
      follow(event, time);
      if (event.scope.step < kProfiledStep) {
        before(event);
      } else if (event.scope.step == kProfiledStep) {
        begin();
        during(event, time);
      }
    }
    begin();
    end_pass();
    return std::move(facts_);
  }

 private:
  // How far each stream has come, and what an event that is recorded there stands for.
  void follow(const TraceEvent& event, EventTime time) {
    std::int64_t& end = stream_end_[event.stream];
    if (takes_time(event)) end = std::max(end, time.end);
    if (event.type == EventType::record) recorded_[event.id] = end;
    if (event.type != EventType::wait) return;
    const auto found = recorded_.find(event.id);
    if (found != recorded_.end()) end = std::max(end, found->second);
  }

  static bool computes(const TraceEvent& event) {
    return event.stream == static_cast<std::uint8_t>(StreamId::compute);
  }

  static std::int64_t change_of(const TraceEvent& event) {
    if (event.space != MemorySpace::device) return 0;
    if (event.type == EventType::allocate) return event.bytes_written;
    return event.type == EventType::free ? -event.bytes_written : 0;
  }

  void before(const TraceEvent& event) {
    held_ += change_of(event);
    const bool is_pass = event.scope.micro >= 0 && event.scope.phase != Phase::other;
    if (is_pass && computes(event)) {
      facts_.passes_before_end = std::max(facts_.passes_before_end, stream_end_[event.stream]);
    }
    if (event.scope.step == 0) facts_.before_all = std::max(facts_.before_all, held_);
    if (event.type != EventType::allocate || event.scope.step != 0 || !is_ids(event)) return;
    if (event.space != MemorySpace::device) return;
    facts_.slot_bytes += event.bytes_written;
    facts_.slots += std::strcmp(event.what, "tokens") == 0 ? 1 : 0;
  }

  void begin() {
    if (begun_) return;
    begun_ = true;
    facts_.held = held_;
  }

  void during(const TraceEvent& event, EventTime time) {
    const std::int64_t change = change_of(event);
    held_ += change;
    const ReadKind kind = kind_of(event.scope, kind_);
    if (kind == ReadKind::message || kind == ReadKind::step) {
      if (change < 0) moves_window(event, change);
      end_pass();
      kind_ = kind;
      if (kind == ReadKind::message) facts_.message = std::max(facts_.message, change);
      if (kind == ReadKind::step) {
        facts_.step_end_peak = std::max(facts_.step_end_peak, held_ - facts_.held);
      }
      return;
    }
    if (kind != kind_ || event.scope.micro != micro_) begin_pass(kind, event.scope.micro);
    enter_unit(event.scope);
    add(event, time, change);
  }

  void begin_pass(ReadKind kind, int micro) {
    end_pass();
    kind_ = kind;
    micro_ = micro;
    computed_ = std::nullopt;
    pieces_.push_back({});
  }

  // What is gathered or reduced in between belongs to the unit that it comes in.
  void enter_unit(const Scope& scope) {
    if (scope.unit < 0 || scope.phase == Phase::gather || scope.phase == Phase::reduce) return;
    const int unit = group_of(scope.unit);
    if (pieces_.back().unit == unit) return;
    if (pieces_.back().unit < 0) {
      pieces_.back().unit = unit;
    } else {
      pieces_.push_back({unit, {}});
    }
  }

  // The embedding stays unit 0.
  int group_of(int unit) const {
    return unit == 0 ? 0 : 1 + (unit - 1) / static_cast<int>(stage_.group);
  }

  void add(const TraceEvent& event, EventTime time, std::int64_t change) {
    Segment& own = pieces_.back().segment;
    if (!moves_window(event, change)) own.net += change;
    own.peak = std::max(own.peak, own.net + window_);
    if (computes(event) && event.type == EventType::wait && computed_) {
      const std::int64_t from = std::exchange(*computed_, std::max(*computed_, end_of_compute()));
      own.time += *computed_ - from;
    }
    if (!takes_time(event)) return;
    if (computes(event)) {
      const std::int64_t from = computed_.value_or(time.start);
      computed_ = std::max(from, time.end);
      own.time += *computed_ - from;
      facts_.passes_begin = std::min(facts_.passes_begin, time.start);
    } else if (event.stream == static_cast<std::uint8_t>(StreamId::communication)) {
      own.sent += time.end - time.start;
      const bool copies = event.type == EventType::collective &&
                          event.axis == static_cast<std::uint8_t>(Axis::replicate);
      if (copies) own.once += time.end - time.start;
    }
  }

  std::int64_t end_of_compute() const {
    return stream_end_[static_cast<std::size_t>(StreamId::compute)];
  }

  // Gathered weights and buckets of gradients are there once, however many micro-batches are on
  // their way.
  bool moves_window(const TraceEvent& event, std::int64_t change) {
    if (change > 0) {
      const auto tag = static_cast<MemoryTag>(event.kind);
      if (tag != MemoryTag::parameter && tag != MemoryTag::communication) return false;
      in_window_.insert(event.id);
    } else if (change == 0 || in_window_.erase(event.id) == 0) {
      return false;
    }
    window_ += change;
    return true;
  }

  // Later micro-batches stand for those before, the first and the last for themselves.
  void end_pass() {
    if (pieces_.empty()) return;
    const auto keep = [&](StagePass pass) {
      facts_.passes[static_cast<std::size_t>(pass)] = pieces_;
    };
    PassPieces* const usual = [&] {
      const StagePass pass = kind_ == ReadKind::forward    ? StagePass::forward
                             : kind_ == ReadKind::backward ? StagePass::backward
                                                           : StagePass::weight;
      return &facts_.passes[static_cast<std::size_t>(pass)];
    }();
    if (kind_ == ReadKind::forward) {
      if (micro_ == 0) keep(StagePass::first_forward);
      *usual = pieces_;
    } else {
      // The newest is the last so far; the one before it is a usual one.
      const StagePass last =
          kind_ == ReadKind::backward ? StagePass::last_backward : StagePass::last_weight;
      PassPieces& newest = facts_.passes[static_cast<std::size_t>(last)];
      *usual = newest.empty() ? pieces_ : newest;
      newest = pieces_;
    }
    pieces_.clear();
    micro_ = -1;
    kind_ = ReadKind::step;
  }

  const RecordedStage& stage_;
  StageFacts facts_;
  std::int64_t held_ = 0;
  std::array<std::int64_t, kStreams> stream_end_{};
  std::map<std::int64_t, std::int64_t> recorded_;  // by event id
  std::set<std::int64_t> in_window_;               // addresses
  std::int64_t window_ = 0;
  bool begun_ = false;
  ReadKind kind_ = ReadKind::step;
  int micro_ = -1;
  std::optional<std::int64_t> computed_;
  PassPieces pieces_;
};

Segment whole_of(const PassPieces& pieces) {
  Segment sum;
  for (const UnitPiece& piece : pieces) sum = then(sum, piece.segment);
  return sum;
}

// The blocks of a pass, between what comes before and after them. False: they are not alike.
bool fill_series(const PassPieces& pieces, int first_block, LayerSeries& series) {
  const auto is_block = [&](const UnitPiece& piece) {
    return piece.unit >= first_block && piece.unit < first_block + kProfiledLayers;
  };
  std::vector<Segment> blocks;
  for (const UnitPiece& piece : pieces) {
    if (is_block(piece)) {
      blocks.push_back(piece.segment);
    } else {
      Segment& outside = blocks.empty() ? series.before : series.after;
      outside = then(outside, piece.segment);
    }
  }
  if (blocks.size() != kProfiledLayers) return pieces.empty();
  series.first = blocks[0];
  series.middle = blocks[1];
  series.middle.time = (blocks[1].time + blocks[2].time) / 2;
  series.middle.sent = (blocks[1].sent + blocks[2].sent) / 2;
  series.last = blocks[3];
  series.several = kProfiledLayers;
  return blocks[1].holds_as(blocks[2]);
}

// Picoseconds over hybrid sharding's copies from the last block on.
std::int64_t once_at_end(const PassPieces& pieces, int last_unit) {
  std::int64_t once = 0;
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) {
    once += piece->segment.once;
    if (piece->unit == last_unit) break;
  }
  return once;
}

// Through two points; false: not with a whole number of bytes a layer.
bool line_through(std::int64_t single, std::int64_t several, PerLayer& line) {
  line.layer = (several - single) / (kProfiledLayers - 1);
  line.base = single - line.layer;
  return line.of(kProfiledLayers) == several;
}

// Of stages with so many layers each.
int first_block_of(StagePlace place, std::int64_t layers) {
  if (place == StagePlace::middle) return static_cast<int>(layers) + 1;
  if (place == StagePlace::last) return 2 * static_cast<int>(layers) + 1;
  return 1;
}

// From the last pass of one step to the first of the next, on whichever ranks they are.
std::int64_t between_steps(std::span<const StageFacts> all) {
  std::int64_t end = 0, begin = INT64_MAX;
  for (const StageFacts& each : all) {
    end = std::max(end, each.passes_before_end);
    begin = std::min(begin, each.passes_begin);
  }
  return std::max<std::int64_t>(0, begin - end);
}

bool fill_profile(const StageFacts& one, const StageFacts& more, StagePlace place,
                  StageProfile& profile) {
  bool exact = one.slots == more.slots || one.slots == 0;
  for (std::size_t pass = 0; pass < kStagePasses; ++pass) {
    LayerSeries& series = profile.passes[pass];
    series.single = whole_of(one.passes[pass]);
    exact = fill_series(more.passes[pass], first_block_of(place, kProfiledLayers), series) && exact;
    // A backward comes to its first block last.
    series.growth = (once_at_end(more.passes[pass], first_block_of(place, kProfiledLayers)) -
                     once_at_end(one.passes[pass], first_block_of(place, 1))) /
                    (kProfiledLayers - 1);
  }
  profile.slot = one.slots > 0 ? one.slot_bytes / one.slots : 0;
  exact =
      line_through(one.held - one.slot_bytes, more.held - more.slot_bytes, profile.held) && exact;
  exact = line_through(one.before_all - one.slot_bytes, more.before_all - more.slot_bytes,
                       profile.before_all) &&
          exact;
  return line_through(one.step_end_peak, more.step_end_peak, profile.step_end_peak) && exact;
}

// What a micro-batch takes it gives back.
bool gives_back(const StageProfile& profile) {
  const auto net = [&](StagePass pass) { return profile.pass(pass, kProfiledLayers).net; };
  return net(StagePass::forward) + net(StagePass::backward) + net(StagePass::weight) == 0;
}

}  // namespace

void StageProfiles::take_whole_backwards(const StageProfiles& whole) {
  const auto series = [](auto& profile, StagePass pass) -> auto& {
    return profile.passes[static_cast<std::size_t>(pass)];
  };
  for (std::size_t place = 0; place < at.size(); ++place) {
    series(at[place], StagePass::whole_backward) = series(whole.at[place], StagePass::backward);
    series(at[place], StagePass::last_whole_backward) =
        series(whole.at[place], StagePass::last_backward);
  }
  is_exact = is_exact && whole.is_exact;
}

StageProfiles profile_stages(std::span<const RecordedStage> single,
                             std::span<const RecordedStage> several) {
  ZL_CHECK(single.size() == several.size(), "short and long stages have the same places");
  std::vector<StageFacts> one, more;
  for (const RecordedStage& stage : single) one.push_back(StageReader(stage).read());
  for (const RecordedStage& stage : several) more.push_back(StageReader(stage).read());
  StageProfiles profiles;
  line_through(between_steps(one), between_steps(more), profiles.between_steps);
  for (std::size_t i = 0; i < one.size(); ++i) {
    StageProfile& profile = profiles.at[static_cast<std::size_t>(single[i].place)];
    profiles.is_exact =
        fill_profile(one[i], more[i], single[i].place, profile) && profiles.is_exact;
    profiles.is_exact = profiles.is_exact && gives_back(profile);
    profiles.message = std::max(profiles.message, more[i].message);
  }
  return profiles;
}

}  // namespace zl::sim
