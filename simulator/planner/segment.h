// What a stretch of a rank's program does to its memory and how long it takes, so that stretches
// can be put together without recording the whole: an associative sum.
// Ownership: values. Threads: pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace zl::sim {

struct Segment {
  std::int64_t net = 0;   // bytes that it holds more at its end than at its begin
  std::int64_t peak = 0;  // most bytes that it holds more than at its begin, no less than 0
  std::int64_t time = 0;  // picoseconds of the compute stream, waits within included
  std::int64_t sent = 0;  // picoseconds that the communication stream runs collectives
  std::int64_t once = 0;  // of these, over the copies of hybrid sharding

  // How long it takes where it comes over and over: the slower of the two streams.
  std::int64_t duration() const { return std::max(time, sent); }
  bool holds_as(const Segment& other) const { return net == other.net && peak == other.peak; }
};

// One after the other.
inline Segment then(const Segment& a, const Segment& b) {
  return {a.net + b.net, std::max(a.peak, a.net + b.peak), a.time + b.time, a.sent + b.sent,
          a.once + b.once};
}

// `count` times in a row.
inline Segment repeated(const Segment& each, std::int64_t count) {
  if (count <= 0) return {};
  return {count * each.net, each.peak + std::max<std::int64_t>(0, (count - 1) * each.net),
          count * each.time, count * each.sent, count * each.once};
}

// A pass of a micro-batch through a stage of any number of layers: those in the middle are alike.
// has_rank: no other stage is on its rank.
struct LayerSeries {
  Segment single;          // a stage of one layer, whole, that is all its rank has
  Segment one_of_several;  // likewise, of several stages of a rank
  Segment before, first, middle, last, after;      // of more
  Segment single_tail, one_of_several_tail, tail;  // of these, in their last unit
  std::int64_t several = 4;                        // layers that `last` and `after` were taken from
  std::int64_t growth = 0;  // picoseconds a layer, of what is sent at the end for all of them

  Segment of(std::int64_t layers, bool has_rank = true) const {
    if (layers <= 1) return has_rank ? single : one_of_several;
    const Segment begin = then(before, first), end = then(last, after);
    return grown(then(then(begin, repeated(middle, layers - 2)), end), layers);
  }
  const Segment& tail_of(std::int64_t layers, bool has_rank) const {
    if (layers > 1) return tail;
    return has_rank ? single_tail : one_of_several_tail;
  }
  std::int64_t more(std::int64_t layers) const { return (layers - several) * growth; }
  Segment grown(Segment all, std::int64_t layers) const {
    all.time += more(layers);
    all.sent += more(layers);
    return all;
  }
};

// The first `count` layers that a pass comes to as in `one`, the others as in `other`: of `layers`,
// of both some. freed: bytes that the first of the others frees of the one before.
inline Segment mixed(const LayerSeries& one, std::int64_t count, const LayerSeries& other,
                     std::int64_t layers, std::int64_t freed = 0) {
  const Segment begin = then(then(one.before, one.first), repeated(one.middle, count - 1));
  const Segment end =
      then(repeated(other.middle, layers - count - 1), then(other.last, other.after));
  return one.grown(then(then(begin, {.net = -freed}), end), layers);
}

}  // namespace zl::sim
