#include "simulator/planner/stage_profile.h"

#include <algorithm>

#include "core/base/error.h"
#include "simulator/cost/price.h"
#include "simulator/planner/stage_reader.h"

namespace zl::sim {
namespace {

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
  series.tail = pieces.back().tail;
  return blocks[1].holds_as(blocks[2]);
}

void append(const std::vector<PassWork>& more, std::vector<PassWork>& work) {
  work.insert(work.end(), more.begin(), more.end());
}

// Small gradients of all layers are reduced together at the end of a pass.
void grow_end(const std::vector<PassWork>& single, std::vector<PassWork>& end) {
  const std::size_t alike = std::min(single.size(), end.size());
  for (std::size_t back = 1; back <= alike; ++back) {
    const PassWork& one = single[single.size() - back];
    PassWork& more = end[end.size() - back];
    if (one.kind != more.kind || one.stream != more.stream || one.other != more.other) return;
    if (more.kind != PassWork::Kind::work || more.stream != StreamId::communication) continue;
    if (!more.copies) more.growth = (more.time - one.time) / (kProfiledLayers - 1);
    return;
  }
}

// As fill_series.
SeriesWork series_work(const PassPieces& one, const PassPieces& several, int first_block) {
  SeriesWork series;
  for (const UnitPiece& piece : one) append(piece.work, series.single);
  std::vector<PassWork>* const blocks[] = {&series.first, &series.middle, nullptr, &series.last};
  std::size_t block = 0;
  for (const UnitPiece& piece : several) {
    std::vector<PassWork>* into = block == 0 ? &series.before : &series.after;
    if (piece.unit >= first_block && piece.unit < first_block + kProfiledLayers) {
      into = blocks[block++];
    }
    if (into != nullptr) append(piece.work, *into);
  }
  series.several = kProfiledLayers;
  if (!one.empty()) {
    grow_end(one.back().work, series.after.empty() ? series.last : series.after);
  }
  return series;
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

// among: of one layer among several stages of a rank.
bool fill_profile(const StageFacts& one, const StageFacts& among, const StageFacts& more,
                  StagePlace place, StageProfile& profile) {
  bool exact = one.slots == more.slots || one.slots == 0;
  for (std::size_t pass = 0; pass < kStagePasses; ++pass) {
    LayerSeries& series = profile.passes[pass];
    series.single = whole_of(one.passes[pass]);
    series.one_of_several = whole_of(among.passes[pass]);
    if (!one.passes[pass].empty()) {
      series.single_tail = one.passes[pass].back().tail;
      series.one_of_several_tail = among.passes[pass].back().tail;
    }
    exact = fill_series(more.passes[pass], first_block_of(place, kProfiledLayers), series) && exact;
    profile.works[pass] =
        series_work(one.passes[pass], more.passes[pass], first_block_of(place, kProfiledLayers));
    // A backward comes to its first block last.
    series.growth = (once_at_end(more.passes[pass], first_block_of(place, kProfiledLayers)) -
                     once_at_end(one.passes[pass], first_block_of(place, 1))) /
                    (kProfiledLayers - 1);
  }
  for (std::size_t part = 0; part < kStepParts; ++part) {
    line_through(one.step.parts[part], more.step.parts[part], profile.step_parts[part]);
  }
  // Behind the first stage passes begin with what others send.
  if (place == StagePlace::middle || place == StagePlace::last) profile.step_parts.back() = {};
  profile.leads = more.leads;
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
  const auto take = [](auto& into, const auto& from) {
    const auto number = [](StagePass pass) { return static_cast<std::size_t>(pass); };
    into[number(StagePass::whole_backward)] = from[number(StagePass::backward)];
    into[number(StagePass::first_whole_backward)] = from[number(StagePass::first_backward)];
    into[number(StagePass::last_whole_backward)] = from[number(StagePass::last_backward)];
  };
  for (std::size_t place = 0; place < at.size(); ++place) {
    take(at[place].passes, whole.at[place].passes);
    take(at[place].works, whole.at[place].works);
  }
  is_exact = is_exact && whole.is_exact;
}

StageProfiles profile_stages(std::span<const RecordedStage> single,
                             std::span<const RecordedStage> several) {
  ZL_CHECK(single.size() == several.size(), "short and long stages have the same places");
  std::vector<StageFacts> one, among, more;
  for (std::size_t i = 0; i < single.size(); ++i) {
    one.push_back(read_stage(single[i]));
    const SharedBucket bucket = shared_bucket(*single[i].trace.trace, *several[i].trace.trace);
    among.push_back(bucket.recorded > 0 ? read_stage(single[i], bucket) : one.back());
    more.push_back(read_stage(several[i]));
  }
  StageProfiles profiles;
  const ClusterSpec& cluster = *several.front().cluster;
  profiles.overlap_loss = cluster.compute_is_host ? 0 : CostModel(cluster).overlap_loss();
  profiles.messages_apart = cluster.device.software.message_stream;
  profiles.reduces_last = cluster.device.software.reduces_last;
  profiles.cores = shared_cores(cluster);
  for (std::size_t i = 0; i < one.size(); ++i) {
    StageProfile& profile = profiles.at[static_cast<std::size_t>(single[i].place)];
    profiles.is_exact =
        fill_profile(one[i], among[i], more[i], single[i].place, profile) && profiles.is_exact;
    profiles.is_exact = profiles.is_exact && gives_back(profile);
    profiles.message = std::max(profiles.message, more[i].message);
    profiles.exchanged = std::max(profiles.exchanged, more[i].step.exchanged);
    profiles.group = several[i].group;
  }
  return profiles;
}

// The ends of the model are units beside the layers, and the head is where forwards turn.
StageWeights StageProfiles::weights_of(StagePlace place, std::int64_t layers) const {
  const bool has_end = place != StagePlace::middle;
  const bool has_head = place == StagePlace::last || place == StagePlace::whole;
  return {.leads = of(place).leads,
          .has_several = {has_end || layers > 1, has_end || layers * group > 1},
          .turns_elsewhere = group > 1 && !has_head};
}

}  // namespace zl::sim
