#include "simulator/planner/pipeline_order.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace zl::sim {
namespace {

constexpr std::int32_t kNone = -1;

bool is_send(InstructionKind kind) {
  return kind == InstructionKind::send_stream || kind == InstructionKind::send_gradient;
}
bool is_receive(InstructionKind kind) {
  return kind == InstructionKind::receive_stream || kind == InstructionKind::receive_gradient;
}
bool is_release(InstructionKind kind) {
  return kind == InstructionKind::release_stream || kind == InstructionKind::release_gradient;
}
bool is_forward(StagePass pass) {
  return pass == StagePass::forward || pass == StagePass::first_forward;
}
bool is_forward_message(InstructionKind kind) {
  return kind == InstructionKind::send_stream || kind == InstructionKind::receive_stream ||
         kind == InstructionKind::release_stream;
}

}  // namespace

class PipelineOrder::Maker {
 public:
  Maker(const PipelinePlan& plan, PipelineOrder& into)
      : plan_(plan),
        pipeline_(plan.pipeline),
        into_(into),
        micros_(static_cast<std::size_t>(pipeline_.shape.micro_batches)),
        next_(plan.schedules.size(), 0),
        visited_(plan.schedules.size(), kNone) {
    for (std::vector<std::int32_t>* steps :
         {&forward_, &gradient_, &sent_[0], &sent_[1], &received_[0], &received_[1]}) {
      steps->assign(static_cast<std::size_t>(pipeline_.stages()) * micros_, kNone);
    }
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      passes_.emplace_back(pipeline_.shape.chunks, pipeline_.shape.micro_batches,
                           splits_backward(pipeline_.kind));
    }
  }

  void make() {
    into_.ranks_ = next_.size();
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t rank = 0; rank < next_.size(); ++rank) {
        while (next_[rank] < body(rank).size() && advance(rank)) moved = true;
      }
    }
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      ZL_CHECK(next_[rank] == body(rank).size(), "no rank of a pipeline waits for ever");
    }
    const std::size_t ranks = into_.ranks_;
    if (micros_ < 3 * ranks) return;
    // Before the last backwards forwards have ended: of several stages a round before.
    const bool is_single = pipeline_.shape.chunks == 1;
    const std::size_t after = is_single ? micros_ - 2 : 3 * ranks - 1;
    for (const int stage : {0, pipeline_.stages() - 1}) {
      into_.rounds_.push_back({gradient_[at(stage, static_cast<int>(after - ranks))],
                               gradient_[at(stage, static_cast<int>(after))]});
    }
  }

 private:
  const std::vector<Instruction>& body(std::size_t rank) const {
    return plan_.schedules[rank].body;
  }
  std::size_t at(int stage, int micro) const {
    return static_cast<std::size_t>(stage) * micros_ + static_cast<std::size_t>(micro);
  }

  // False: what it needs is still to come.
  bool advance(std::size_t rank) {
    const Instruction& each = body(rank)[next_[rank]];
    const int stage = pipeline_.stage_of(static_cast<int>(rank), each.chunk);
    Step step{.rank = static_cast<std::uint16_t>(rank), .stage = static_cast<std::uint16_t>(stage)};
    if (is_send(each.kind) || is_receive(each.kind) || is_release(each.kind)) {
      if (!add_message(each, step)) return false;
    } else if (const auto pass = passes_[rank].next(each)) {
      add_work(each, *pass, step);
    }
    ++next_[rank];
    return true;
  }

  // Of neighbours the lower; the last and the first are neighbours of a third kind.
  std::uint16_t hop_of(int rank, int peer) const {
    const int low = std::min(rank, peer), high = std::max(rank, peer);
    return static_cast<std::uint16_t>(high - low == 1 ? low : high);
  }

  bool add_message(const Instruction& each, Step step) {
    const bool forward = is_forward_message(each.kind);
    const std::size_t own = at(step.stage, each.micro);
    std::vector<std::int32_t>& sent = sent_[forward ? 1 : 0];
    if (is_receive(each.kind)) {
      step.kind = Kind::receive;
      step.need = sent[at(step.stage + (forward ? -1 : 1), each.micro)];
      if (step.need == kNone) return false;
      received_[forward ? 1 : 0][own] = add(step);
    } else if (is_send(each.kind)) {
      step.kind = Kind::send;
      step.need = (forward ? forward_ : gradient_)[own];
      step.hop = hop_of(step.rank, pipeline_.rank_of(step.stage + (forward ? 1 : -1)));
      sent[own] = add(step);
    } else {
      step.kind = Kind::release;
      step.need = sent[own];
      add(step);
    }
    return true;
  }

  void add_work(const Instruction& each, StagePass pass, Step step) {
    const std::size_t own = at(step.stage, each.micro);
    const bool forward = pass == StagePass::forward;
    const bool first = forward && step.stage == 0 && !begun_;
    begun_ = begun_ || first;
    step.pass = first ? StagePass::first_forward : pass;
    const bool comes = !is_weight(pass);
    if (comes) step.need = received_[forward ? 1 : 0][own];
    step.visits = comes;
    const std::int32_t index = add(step);
    if (comes) follow_visit(step, forward, index);
    if (forward) forward_[own] = index;
    if (!forward && comes) gradient_[own] = index;
  }

  // Tells the pass before it, of its rank, what comes.
  void follow_visit(const Step& step, bool forward, std::int32_t index) {
    std::int32_t& before = visited_[step.rank];
    if (before != kNone) {
      Step& last = into_.steps_[static_cast<std::size_t>(before)];
      last.next = next_pass(last.stage, is_forward(last.pass), step.stage, forward);
    }
    before = index;
  }

  std::int32_t add(const Step& step) {
    into_.steps_.push_back(step);
    return static_cast<std::int32_t>(into_.steps_.size() - 1);
  }

  const PipelinePlan& plan_;
  const Pipeline& pipeline_;
  PipelineOrder& into_;
  std::size_t micros_;
  std::vector<std::size_t> next_;      // [rank], of its list
  std::vector<std::int32_t> visited_;  // [rank], its last step that came to weights
  std::vector<PassReader> passes_;
  // Of each stage and micro-batch, the steps that do so: messages back [0] and forward [1].
  std::vector<std::int32_t> forward_, gradient_;
  std::array<std::vector<std::int32_t>, 2> sent_, received_;
  bool begun_ = false;
};

PipelineOrder::PipelineOrder(const PipelinePlan& plan) { Maker(plan, *this).make(); }

struct PipelineOrder::Rank {
  RankStreams streams;
  std::int64_t brought = -1;  // when the next pass's weights are there; none: not yet asked

  std::int64_t gather(const Lead& lead) {
    streams.follow(StreamId::communication, StreamId::compute);
    if (lead.copied > 0) {
      streams.follow(StreamId::copy_in, StreamId::compute);
      streams.work(StreamId::copy_in, lead.copied);
      streams.follow(StreamId::communication, StreamId::copy_in);
    }
    streams.work(StreamId::communication, lead.time);
    return streams.ready(StreamId::communication);
  }
  // Of its passes, what goes to the host included.
  std::int64_t end() const {
    return std::max({streams.ready(StreamId::compute), streams.ready(StreamId::copy_out),
                     streams.ready(StreamId::host)});
  }
  // With reductions that nobody waited for.
  std::int64_t end_of_all() const {
    return std::max(end(), streams.ready(StreamId::communication));
  }
};

// A pass begins when what it takes and its first weights are there.
std::int64_t PipelineOrder::run(const Step& step, std::span<const StageCosts> costs,
                                std::int64_t need, Rank& rank) {
  const StageCosts& own = costs[step.stage];
  rank.streams.wait_until(StreamId::compute, need);
  if (step.visits) {
    const Lead& lead = own.weights.leads[is_forward(step.pass) ? 1 : 0];
    if (rank.brought < 0 && lead.time > 0) rank.brought = rank.gather(lead);
    rank.streams.wait_until(StreamId::compute, rank.brought);
    rank.brought = -1;
  }
  return rank.streams.run(own.passes[static_cast<std::size_t>(step.pass)],
                          [&] { bring(step.next, costs, rank); });
}

// Weights of the next pass.
void PipelineOrder::bring(const NextPass& next, std::span<const StageCosts> costs, Rank& rank) {
  if (next.stage < 0) return;
  const StageWeights& weights = costs[static_cast<std::size_t>(next.stage)].weights;
  const Lead& lead = next.lead(weights);
  if (lead.time > 0 && next.is_brought(weights)) rank.brought = rank.gather(lead);
}

// Where every rank works when it can, each at the pace of all at work.
PipelineOrder::Ends PipelineOrder::ends_of_all_at_work(const PipelineCosts& costs,
                                                       std::vector<WorkingRanks>* working) const {
  const StreamId sends = RankStreams::messages(costs.messages_apart);
  std::vector<std::int64_t> end(steps_.size());
  std::vector<Rank> ranks;
  ranks.reserve(ranks_);
  for (std::size_t rank = 0; rank < ranks_; ++rank) {
    std::vector<EventTime>* const worked = working == nullptr ? nullptr : &(*working)[rank].times;
    ranks.push_back({.streams = RankStreams(costs.overlap_loss, worked)});
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    Rank& rank = ranks[step.rank];
    const std::int64_t need = step.need < 0 ? 0 : end[static_cast<std::size_t>(step.need)];
    switch (step.kind) {
      case Kind::work:
        end[i] = run(step, costs.stages, need, rank);
        break;
      case Kind::send:
        rank.streams.wait_until(sends, need);
        rank.streams.send(sends, costs.hops[step.hop]);
        end[i] = rank.streams.ready(sends);
        break;
      case Kind::receive:  // its memory was in use until now
        rank.streams.follow(sends, StreamId::compute);
        rank.streams.message_until(sends, need);
        end[i] = rank.streams.ready(sends);
        break;
      case Kind::release:
        rank.streams.wait_until(StreamId::compute, need);
        break;
    }
  }
  Ends ends{std::move(end), {}};
  for (const Rank& rank : ranks) {
    ends.ranks.push_back(costs.reduces_last ? rank.end_of_all() : rank.end());
  }
  return ends;
}

// What is left out takes as long each as those of the steady part.
std::vector<std::int64_t> PipelineOrder::ends(const PipelineCosts& costs) const {
  const int alike = costs.cores.ranks / static_cast<int>(ranks_);
  std::vector<WorkingRanks> working(costs.cores.matter() ? ranks_ : 0, WorkingRanks{alike, {}});
  Ends ends = ends_of_all_at_work(costs, working.empty() ? nullptr : &working);
  if (!working.empty()) {
    const SharedClock clock(working, costs.cores);
    for (std::vector<std::int64_t>* each : {&ends.steps, &ends.ranks}) {
      for (std::int64_t& end : *each) end = static_cast<std::int64_t>(clock.passed(end));
    }
  }
  std::int64_t left_out = 0;
  for (const Round& each : rounds_) {
    const std::int64_t round = ends.steps[static_cast<std::size_t>(each.after)] -
                               ends.steps[static_cast<std::size_t>(each.before)];
    left_out = std::max(left_out, costs.left_out * round / static_cast<std::int64_t>(ranks_));
  }
  for (std::int64_t& end : ends.ranks) end += left_out;
  return std::move(ends.ranks);
}

// Beyond some micro-batches each takes as long as the one before.
std::int64_t PipelineOrder::time_alone(const StageCosts& costs, std::int64_t micro_batches,
                                       double overlap_loss) {
  constexpr std::int64_t kFollowed = 8;
  Rank rank{.streams = RankStreams(overlap_loss)};
  const auto pass = [&](StagePass which, NextPass next) {
    run({.pass = which, .next = next, .visits = true}, std::span(&costs, 1), 0, rank);
  };
  const std::int64_t count = std::min(micro_batches, kFollowed);
  std::int64_t before = 0, round = 0;
  for (std::int64_t i = 1; i <= count; ++i) {
    const bool first = i == 1, last = i == count;
    pass(first ? StagePass::first_forward : StagePass::forward, next_pass(0, true, 0, false));
    pass(last    ? StagePass::last_backward
         : first ? StagePass::first_backward
                 : StagePass::backward,
         last ? NextPass{} : next_pass(0, false, 0, true));
    if (!last) round = rank.end() - std::exchange(before, rank.end());
  }
  return rank.end() + (micro_batches - count) * round;
}

}  // namespace zl::sim
