#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/pipeline/pipeline_times.h"

namespace zl {
namespace {

[[noreturn]] void refuse_list(const Pipeline& pipeline, int rank, const std::string& what) {
  throw Error(ErrorCode::infeasible, std::string("parallel.schedule: ") + name_of(pipeline.kind) +
                                         ", rank " + std::to_string(rank) + ": " + what);
}

std::string text_of(const Work& work) {
  static constexpr const char* kLetters = "FBIW";
  return kLetters[static_cast<std::size_t>(work.kind)] + std::to_string(work.micro) + " of stage " +
         std::to_string(work.stage);
}

// A whole backward is both halves.
std::vector<WorkKind> parts(WorkKind kind) {
  if (kind != WorkKind::backward) return {kind};
  return {WorkKind::input_gradient, WorkKind::weight_gradient};
}

void check_complete(const Pipeline& pipeline) {
  using Part = std::pair<WorkKind, std::pair<int, int>>;
  std::set<Part> seen;
  for (int rank = 0; rank < pipeline.shape.ranks; ++rank) {
    for (const Work& work : pipeline.work[rank]) {
      const bool exists = work.stage >= 0 && work.stage < pipeline.stages() && work.micro >= 0 &&
                          work.micro < pipeline.shape.micro_batches;
      if (!exists) refuse_list(pipeline, rank, text_of(work) + " does not exist");
      if (pipeline.rank_of(work.stage) != rank) {
        refuse_list(pipeline, rank,
                    "runs " + text_of(work) + ", which rank " +
                        std::to_string(pipeline.rank_of(work.stage)) + " has");
      }
      for (const WorkKind part : parts(work.kind)) {
        if (seen.insert({part, {work.stage, work.micro}}).second) continue;
        refuse_list(pipeline, rank, "runs " + text_of(work) + " twice");
      }
    }
  }
  for (int stage = 0; stage < pipeline.stages(); ++stage) {
    for (int micro = 0; micro < pipeline.shape.micro_batches; ++micro) {
      for (const WorkKind part :
           {WorkKind::forward, WorkKind::input_gradient, WorkKind::weight_gradient}) {
        if (seen.contains({part, {stage, micro}})) continue;
        refuse_list(pipeline, pipeline.rank_of(stage),
                    "never runs " + text_of({part, micro, stage}));
      }
    }
  }
}

// Sender and receiver; whether it carries a stream forward or a gradient back.
struct Channel {
  int from = 0, to = 0;
  bool forward = false;
  bool operator<(const Channel& other) const {
    return std::tie(from, to, forward) < std::tie(other.from, other.to, other.forward);
  }
};
using Messages = std::map<Channel, std::vector<Work>>;

// What goes over each channel in the order of the lists: as it is sent, and as it is taken.
void collect(const Pipeline& pipeline, const Work& work, Messages& sent, Messages& taken) {
  if (work.kind == WorkKind::weight_gradient) return;
  const bool forward = work.kind == WorkKind::forward;
  const int rank = pipeline.rank_of(work.stage), step = forward ? 1 : -1;
  const auto exists = [&](int stage) {
    return stage >= 0 && stage < pipeline.stages() && pipeline.rank_of(stage) != rank;
  };
  const int next = work.stage + step, before = work.stage - step;
  // Named by the work that takes it.
  const WorkKind kind = forward ? WorkKind::forward : WorkKind::input_gradient;
  if (exists(next)) {
    sent[{rank, pipeline.rank_of(next), forward}].push_back({kind, work.micro, next});
  }
  if (exists(before)) {
    taken[{pipeline.rank_of(before), rank, forward}].push_back({kind, work.micro, work.stage});
  }
}

void check_messages(const Pipeline& pipeline) {
  Messages sent, taken;
  for (const std::vector<Work>& list : pipeline.work) {
    for (const Work& work : list) collect(pipeline, work, sent, taken);
  }
  for (const auto& [channel, messages] : sent) {
    const std::vector<Work>& expected = taken[channel];
    const auto [given, wanted] = std::ranges::mismatch(messages, expected);
    if (given == messages.end()) continue;
    refuse_list(pipeline, channel.from,
                "sends " + text_of(*given) + " where rank " + std::to_string(channel.to) +
                    " takes " + text_of(*wanted));
  }
}

}  // namespace

void check_pipeline(const Pipeline& pipeline, int most_held) {
  check_complete(pipeline);
  check_messages(pipeline);
  const std::vector<StageCosts> equal(pipeline.stages());
  const PipelineTimes times = time_pipeline(pipeline, equal);
  if (most_held == 0) return;
  for (int rank = 0; rank < pipeline.shape.ranks; ++rank) {
    const int held = times.ranks[rank].held_until_weight_gradient;
    if (held > most_held) {
      refuse_list(pipeline, rank,
                  "holds " + std::to_string(held) + " forwards, at most " +
                      std::to_string(most_held) + " are allowed");
    }
  }
}

}  // namespace zl
