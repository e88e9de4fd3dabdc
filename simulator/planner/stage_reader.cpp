#include "simulator/planner/stage_reader.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/stream.h"
#include "core/device/device.h"
#include "simulator/event_account.h"
#include "simulator/planner/pass_window.h"
#include "simulator/planner/program_reader.h"
#include "simulator/planner/read_kind.h"
#include "simulator/planner/stream_ends.h"

namespace zl::sim {
namespace {

constexpr int kNoUnit = -1, kUnknownUnit = -2;  // of units

bool is_ids(const TraceEvent& event) {
  constexpr std::string_view kIds[] = {"tokens", "targets", "segments", "lengths"};
  return std::ranges::find(kIds, std::string_view(event.what)) != std::end(kIds);
}

bool computes(const TraceEvent& event) { return is_on(StreamId::compute, event); }

// Reads a trace event by event.
class StageReader {
 public:
  StageReader(const RecordedStage& stage, const SharedBucket& bucket)
      : stage_(stage),
        bucket_(bucket),
        late_(late_reductions_of(stage)),
        ends_(stage.cluster->device.software.message_stream),
        programs_(*stage.trace.trace, *stage.cluster,
                  stage.trace.ranks.empty() ? 0 : stage.trace.ranks.front(), late_) {}

  StageFacts read() {
    facts_.step = read_step(stage_, late_);
    std::size_t index = 0;
    for (const TraceEvent& event : stage_.trace.trace->events()) {
      const EventTime time = stage_.timeline->events[index++];
      if (late_.defers(event)) continue;
      ends_.follow(event, time);
      if (event.scope.step < kProfiledStep) {
        before(event, time);
      } else if (event.scope.step == kProfiledStep) {
        begin();
        during(event, time);
      }
    }
    begin();
    end_pass();
    for (const std::size_t direction : {0, 1}) {
      const auto lead = gathered_[direction].find(first_unit_[direction]);
      if (lead != gathered_[direction].end()) facts_.leads[direction] = lead->second;
    }
    return std::move(facts_);
  }

 private:
  void before(const TraceEvent& event, EventTime time) {
    held_ += bucket_.change_of(event);
    const bool is_pass = event.scope.micro >= 0 && event.scope.phase != Phase::other;
    // What goes to the host waits for room there, of the step before as well.
    if (is_pass && is_on(StreamId::host, event) && event.type == EventType::record) {
      std::vector<PassWork> none;
      programs_.add(event, time, none);
    }
    if (event.scope.step == 0) facts_.before_all = std::max(facts_.before_all, held_);
    const bool is_slot = event.type == EventType::allocate && event.scope.step == 0 &&
                         event.space == MemorySpace::device && is_ids(event);
    if (!is_slot) return;
    facts_.slot_bytes += event.bytes_written;
    facts_.slots += std::strcmp(event.what, "tokens") == 0 ? 1 : 0;
  }

  void begin() {
    if (begun_) return;
    begun_ = true;
    facts_.held = held_;
  }

  void during(const TraceEvent& event, EventTime time) {
    const std::int64_t change = bucket_.change_of(event);
    held_ += change;
    // Weights may be asked for before a pass says what it is.
    const bool is_between =
        kind_ == ReadKind::message || kind_ == ReadKind::step || !asked_.empty();
    const bool is_asked = is_between && event.scope.micro >= 0 && is_nested(event.scope.phase);
    if (is_asked || is_again(event.scope)) {
      asked_.push_back({event, time, change});
      return;
    }
    const ReadKind kind = read_kind(event.scope, kind_);
    if (kind == ReadKind::message || kind == ReadKind::step) {
      if (change < 0) window_.moves(event, change);
      end_pass();
      kind_ = kind;
      if (kind == ReadKind::message) facts_.message = std::max(facts_.message, change);
      if (kind == ReadKind::step) {
        facts_.step_end_peak = std::max(facts_.step_end_peak, held_ - facts_.held);
      }
      return;
    }
    if (kind != kind_ || event.scope.micro != micro_) begin_pass(kind, event.scope.micro);
    for (const Asked& each : std::exchange(asked_, {})) add(each.event, each.time, each.change);
    enter_unit(event.scope);
    add(event, time, change);
  }

  void begin_pass(ReadKind kind, int micro) {
    end_pass();
    kind_ = kind;
    micro_ = micro;
    computed_ = std::nullopt;
    pieces_.push_back({});
    unit_ = -1;
    lead_unit_ = window_.has_ahead() ? kNoUnit : kUnknownUnit;
    worked_ = brings_ = false;
    if (kind == ReadKind::weight) return;  // comes to no weights
    window_.take_ahead();
  }

  // What is gathered or reduced in between belongs to the unit that it comes in.
  void enter_unit(const Scope& scope) {
    if (scope.unit < 0 || scope.phase == Phase::gather || scope.phase == Phase::reduce) return;
    if (unit_ < 0 && kind_ != ReadKind::weight) first_unit_[direction()] = scope.unit;
    if (unit_ >= 0 && scope.unit != unit_) pieces_.back().tail = {};
    unit_ = scope.unit;
    const int unit = group_of(scope.unit);
    if (pieces_.back().unit == unit) return;
    if (pieces_.back().unit < 0) {
      pieces_.back().unit = unit;
    } else {
      pieces_.push_back({unit, {}});
    }
  }

  // The weights that a pass comes to first, where they were not brought before.
  bool is_lead(const TraceEvent& event) {
    if (worked_ || event.scope.phase != Phase::gather) return false;
    if (lead_unit_ == kUnknownUnit) lead_unit_ = event.scope.unit;
    return event.scope.unit == lead_unit_;
  }

  std::size_t direction() const { return kind_ == ReadKind::forward ? 1 : 0; }

  // Weights of the unit that the pass ended in: the pass after it begins there.
  bool is_again(const Scope& scope) const {
    return scope.phase == Phase::gather && scope.unit >= 0 && scope.unit == unit_ &&
           (kind_ == ReadKind::forward || scope.micro != micro_);
  }

  // Weights that the pass after this one comes to first.
  bool is_ahead(const Scope& scope) const {
    if (scope.phase != Phase::gather || scope.unit < 0 || unit_ < 0) return false;
    if (kind_ == ReadKind::forward) return scope.unit < unit_;
    return kind_ == ReadKind::backward && group_of(scope.unit) > group_of(unit_);
  }

  // Of weights on their way, whichever pass takes them.
  void add_gather(const TraceEvent& event, EventTime time, std::int64_t change) {
    if (event.scope.phase != Phase::gather || event.scope.unit < 0) return;
    const bool turns =
        is_ahead(event.scope) && kind_ == ReadKind::forward && event.scope.unit != first_unit_[1];
    Lead& lead = gathered_[turns ? 0 : direction()][event.scope.unit];
    if (change > 0) lead = {.bytes = change};
    if (takes_time(event)) {
      (is_on(StreamId::copy_in, event) ? lead.copied : lead.time) += programs_.time_of(event, time);
    }
  }

  // The embedding stays unit 0.
  int group_of(int unit) const {
    return unit == 0 ? 0 : 1 + (unit - 1) / static_cast<int>(stage_.group);
  }

  void add(const TraceEvent& event, EventTime time, std::int64_t change) {
    add_gather(event, time, change);
    if (is_ahead(event.scope)) {
      window_.bring_ahead(event, change);
      bring(pieces_.back().work);
      return;
    }
    Segment more{.net = window_.moves(event, change) ? 0 : change};
    if (computes(event) && event.type == EventType::wait && computed_) {
      const std::int64_t from =
          std::exchange(*computed_, std::max(*computed_, ends_.of(event.stream)));
      more.time = *computed_ - from;
    }
    add_work(event, time, more.time);
    if (takes_time(event)) add_time(event, time, more);
    for (Segment* const into : {&pieces_.back().segment, &pieces_.back().tail}) {
      *into = then(*into, more);
      into->peak = std::max(into->peak, into->net + window_.bytes());
    }
  }

  // What a pass waits for at its begin is no part of it: what it takes, and its first weights.
  // waited: for this event.
  void add_work(const TraceEvent& event, EventTime time, std::int64_t waited) {
    std::vector<PassWork>& work = pieces_.back().work;
    if (is_lead(event)) return;
    if (worked_ && computes(event)) ProgramReader::stall(ends_.idle(), work);
    const bool arrives = programs_.add(event, time, work);
    const bool is_first = kind_ == ReadKind::forward && micro_ == 0;
    if (arrives && is_first && worked_ && computes(event)) ProgramReader::stall(waited, work);
    worked_ = worked_ || (computes(event) && takes_time(event) && event.scope.unit >= 0);
  }

  // Once a pass.
  void bring(std::vector<PassWork>& work) {
    if (!std::exchange(brings_, true)) work.push_back({.kind = PassWork::Kind::bring});
  }

  void add_time(const TraceEvent& event, EventTime time, Segment& more) {
    const std::int64_t took = time.end - time.start;
    if (computes(event)) {
      const std::int64_t from = computed_.value_or(time.start);
      computed_ = std::max(from, time.end);
      more.time = *computed_ - from;
      return;
    }
    if (!is_on(StreamId::communication, event)) return;
    more.sent = took;
    if (event.type == EventType::collective && static_cast<Axis>(event.axis) == Axis::replicate) {
      more.once = took;
    }
  }

  // Later micro-batches stand for those before, the first and the last for themselves.
  void end_pass() {
    if (pieces_.empty()) return;
    if (kind_ != ReadKind::weight && !brings_) {  // nothing came after it here
      std::vector<PassWork>& last = pieces_.back().work;
      last.insert(last.begin(), {.kind = PassWork::Kind::bring});
    }
    const auto passes_of = [&](StagePass pass) -> PassPieces& {
      return facts_.passes[static_cast<std::size_t>(pass)];
    };
    if (kind_ == ReadKind::forward) {
      if (micro_ == 0) passes_of(StagePass::first_forward) = pieces_;
      passes_of(StagePass::forward) = pieces_;
    } else {
      // The newest is the last so far; the one before it is a usual one.
      const bool halves = kind_ == ReadKind::weight;
      PassPieces& first = passes_of(halves ? StagePass::first_weight : StagePass::first_backward);
      PassPieces& newest = passes_of(halves ? StagePass::last_weight : StagePass::last_backward);
      passes_of(halves ? StagePass::weight : StagePass::backward) =
          newest.empty() ? pieces_ : newest;
      if (micro_ == 0) first = pieces_;
      newest = pieces_;
    }
    pieces_.clear();
    micro_ = -1;
    kind_ = ReadKind::step;
  }

  struct Asked {
    TraceEvent event;
    EventTime time;
    std::int64_t change = 0;
  };

  const RecordedStage& stage_;
  const SharedBucket bucket_;
  const LateReductions late_;
  StageFacts facts_;
  std::int64_t held_ = 0;
  StreamEnds ends_;
  std::vector<Asked> asked_;  // for the pass to come
  PassWindow window_;
  std::array<std::map<int, Lead>, 2> gathered_;  // by unit; as StageWeights
  std::array<int, 2> first_unit_{-1, -1};        // of a pass, likewise
  int unit_ = -1;                                // that the pass has come to
  int lead_unit_ = kNoUnit;                      // whose weights it asked for first
  bool worked_ = false;                          // in a unit
  bool begun_ = false;
  ProgramReader programs_;
  bool brings_ = false;  // the pass asked for weights of the next one
  ReadKind kind_ = ReadKind::step;
  int micro_ = -1;
  std::optional<std::int64_t> computed_;
  PassPieces pieces_;
};

}  // namespace

StageFacts read_stage(const RecordedStage& stage, const SharedBucket& bucket) {
  return StageReader(stage, bucket).read();
}

}  // namespace zl::sim
