// What a pass of a micro-batch makes the streams of its rank do, and when it has done it: the
// recorded work, put together for any number of layers.
// Ownership: a PassProgram refers to the SeriesWork that it was made of. Threads: values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/stream.h"
#include "simulator/late_reductions.h"
#include "simulator/timeline.h"

namespace zl::sim {

struct PassWork {
  enum class Kind : std::uint8_t {
    work,    // picoseconds of the stream, if nothing disturbs it
    stall,   // the stream stands still for so long
    follow,  // waits for all that `other` has done so far
    record,  // how far the stream is, for waits to come
    wait,    // for what `other` recorded, `back` records ago
    made,    // what goes to the next stage is there
    bring    // the first weights of the rank's next pass are asked for
  };
  Kind kind = Kind::work;
  StreamId stream = StreamId::compute, other = StreamId::compute;
  std::uint8_t back = 0;
  bool copies = false;  // over the copies of hybrid sharding: grows with the layers
  std::int64_t time = 0;
  std::int64_t growth = 0;  // picoseconds for each layer more than were recorded
};

// Records that a stream's waits reach back to.
inline constexpr std::size_t kKeptRecords = 32;

// Of a pass through a stage of one layer, and of more: as LayerSeries.
struct SeriesWork {
  std::vector<PassWork> single, before, first, middle, last, after;
  std::int64_t several = 4;  // as LayerSeries
};

// The same work over and over.
struct PassStretch {
  const PassWork* work = nullptr;
  std::int32_t count = 0, times = 0;
  std::int64_t more = 0;    // picoseconds of what goes over the copies
  std::int64_t beyond = 0;  // layers more than were recorded
};

class PassProgram {
 public:
  void add(const std::vector<PassWork>& work, std::int64_t times = 1, std::int64_t more = 0,
           std::int64_t beyond = 0) {
    add(std::span(work), times, more, beyond);
  }
  void add(std::span<const PassWork> work, std::int64_t times, std::int64_t more,
           std::int64_t beyond = 0) {
    if (work.empty() || times <= 0) return;
    stretches_[count_++] = {work.data(), static_cast<std::int32_t>(work.size()),
                            static_cast<std::int32_t>(times), more, beyond};
  }
  std::span<const PassStretch> stretches() const { return {stretches_.data(), count_}; }

 private:
  std::array<PassStretch, 6> stretches_{};
  std::size_t count_ = 0;
};

// more: picoseconds over the copies, beyond those of the layers that were recorded.
PassProgram program_of(const SeriesWork& series, std::int64_t layers, std::int64_t more);
// As LayerSeries' mixed().
PassProgram mixed_program(const SeriesWork& one, std::int64_t count, const SeriesWork& other,
                          std::int64_t layers, std::int64_t more);

// How far the streams of a rank are. Compute and communication share the cores: of two that overlap
// the one that is issued later loses a share of its progress, as in a Scheduler.
class RankStreams {
 public:
  // worked: gets the times of all work; null: nobody asks for them.
  explicit RankStreams(double overlap_loss, std::vector<EventTime>* worked = nullptr)
      : pace_(1 - overlap_loss), worked_(worked) {}

  std::int64_t ready(StreamId stream) const { return at(stream).ready; }
  void wait_until(StreamId stream, std::int64_t time) {
    Stream& own = at(stream);
    if (time > own.ready) own.ready = own.busy_from = time;
  }
  void follow(StreamId stream, StreamId other) { wait_until(stream, ready(other)); }
  void work(StreamId stream, std::int64_t time) {
    Stream& own = at(stream);
    const std::int64_t start = own.ready;
    if (start > own.busy_until) own.busy_from = start;
    own.ready = own.busy_until = end_of(stream, start, time);
    if (worked_ != nullptr) worked_->push_back({start, own.ready});
  }
  // Messages slow nobody down. apart: they have a stream of their own, and beside collectives half
  // of the link.
  static StreamId messages(bool apart) {
    return apart ? static_cast<StreamId>(kMessageStream) : StreamId::communication;
  }
  void message_until(StreamId stream, std::int64_t time) {
    Stream& own = at(stream);
    own.ready = std::max(own.ready, time);
  }
  void send(StreamId stream, std::int64_t time) {
    const std::int64_t start = ready(stream), until = at(StreamId::communication).busy_until;
    if (stream != StreamId::communication) time += std::clamp<std::int64_t>(until - start, 0, time);
    message_until(stream, start + time);
  }
  // When what goes to the next stage is there; bring(): as PassWork's.
  template <class Bring>
  std::int64_t run(const PassProgram& program, const Bring& bring) {
    std::int64_t made = -1;
    for (const PassStretch& stretch : program.stretches()) {
      if (stretch.count == 1 && stretch.work->kind == PassWork::Kind::work) {
        work(stretch.work->stream, stretch.times * stretch.work->time + more_of(stretch, 0));
        continue;
      }
      for (std::int32_t round = 0; round < stretch.times; ++round) {
        for (std::int32_t i = 0; i < stretch.count; ++i) run_one(stretch, i, made, bring);
      }
    }
    return made >= 0 ? made : ready(StreamId::compute);
  }

 private:
  struct Stream {
    std::int64_t ready = 0, busy_from = 0, busy_until = 0;
    std::uint32_t recorded = 0;
    std::array<std::int64_t, kKeptRecords> records{};
  };

  Stream& at(StreamId stream) { return streams_[static_cast<std::size_t>(stream)]; }
  const Stream& at(StreamId stream) const { return streams_[static_cast<std::size_t>(stream)]; }
  static std::int64_t more_of(const PassStretch& stretch, std::int32_t i) {
    const PassWork& work = stretch.work[i];
    return (work.copies ? stretch.more : 0) + stretch.beyond * work.growth;
  }

  template <class Bring>
  void run_one(const PassStretch& stretch, std::int32_t i, std::int64_t& made, const Bring& bring) {
    const PassWork& each = stretch.work[i];
    Stream& own = at(each.stream);
    switch (each.kind) {
      case PassWork::Kind::work:
        return work(each.stream, each.time + more_of(stretch, i));
      case PassWork::Kind::stall:
        own.ready += each.time;
        return;
      case PassWork::Kind::follow:
        return follow(each.stream, each.other);
      case PassWork::Kind::record:
        own.records[own.recorded++ % kKeptRecords] = own.ready;
        return;
      case PassWork::Kind::wait: {
        const Stream& other = at(each.other);
        return wait_until(each.stream,
                          other.records[(other.recorded - 1 - each.back) % kKeptRecords]);
      }
      case PassWork::Kind::made:
        made = own.ready;
        return;
      case PassWork::Kind::bring:
        return bring();
    }
  }

  std::int64_t end_of(StreamId stream, std::int64_t start, std::int64_t time) const {
    const bool computes = stream == StreamId::compute;
    if (!computes && stream != StreamId::communication) return start + time;
    const Stream& other = at(computes ? StreamId::communication : StreamId::compute);
    const std::int64_t from = std::max(start, other.busy_from), until = other.busy_until;
    if (until <= start || start + time <= from) return start + time;
    const std::int64_t left = time - (from - start);
    const auto done = static_cast<std::int64_t>(pace_ * static_cast<double>(until - from));
    if (left > done) return until + left - done;
    return from + static_cast<std::int64_t>(static_cast<double>(left) / pace_);
  }

  std::array<Stream, kStreamsWithMessages> streams_{};
  double pace_;
  std::vector<EventTime>* worked_;
};

}  // namespace zl::sim
