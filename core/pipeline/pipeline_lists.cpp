#include "core/pipeline/pipeline_lists.h"

#include <algorithm>

namespace zl {
namespace {

// How many forwards a rank runs before its first backward, and how many backwards later the
// weights' half of one comes.
struct WarmUp {
  int forwards = 0, delay = 0;
};

WarmUp warm_up(const Pipeline& pipeline, int rank, int group) {
  const PipelineShape& shape = pipeline.shape;
  const int behind = shape.ranks - 1 - rank;  // ranks of the pipeline after this one
  switch (pipeline.kind) {
    case PipelineKind::interleaved:
      return {.forwards = shape.chunks == 1 ? behind : 2 * behind + (shape.chunks - 1) * group};
    case PipelineKind::zb_h1:
      return {.forwards = behind, .delay = rank};
    case PipelineKind::zb_h2:
      return {.forwards = 2 * behind, .delay = 2 * rank};
    case PipelineKind::interleaved_zb:
      return {.forwards = behind + (shape.chunks - 1) * shape.ranks, .delay = rank};
    default:
      return {.forwards = behind};
  }
}

// Forwards and backwards (or their first halves) of a rank in their two orders.
struct Orders {
  std::vector<Work> forward, backward;
};

Orders orders(const Pipeline& pipeline, int rank, int group, WorkKind backward) {
  Orders both;
  for (const auto& [micro, chunk] : virtual_order(pipeline.shape, group)) {
    both.forward.push_back({WorkKind::forward, micro, pipeline.stage_of(rank, chunk)});
    const int last = pipeline.shape.chunks - 1 - chunk;
    both.backward.push_back({backward, micro, pipeline.stage_of(rank, last)});
  }
  return both;
}

int group_of(const Pipeline& pipeline) {
  const PipelineShape& shape = pipeline.shape;
  if (shape.chunks == 1) return shape.micro_batches;
  return shape.group == 0 ? shape.ranks : shape.group;
}

}  // namespace

std::vector<VirtualMicroBatch> virtual_order(const PipelineShape& shape, int group) {
  std::vector<VirtualMicroBatch> order;
  for (int first = 0; first < shape.micro_batches; first += group) {
    const int last = std::min(first + group, shape.micro_batches);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int micro = first; micro < last; ++micro) order.push_back({micro, chunk});
    }
  }
  return order;
}

std::vector<Work> gpipe_list(const Pipeline& pipeline, int rank) {
  std::vector<Work> list;
  for (const WorkKind kind : {WorkKind::forward, WorkKind::backward}) {
    for (int micro = 0; micro < pipeline.shape.micro_batches; ++micro) {
      list.push_back({kind, micro, rank});
    }
  }
  return list;
}

// The backward runs through chunks and micro-batches the other way round.
std::vector<Work> breadth_first_list(const Pipeline& pipeline, int rank) {
  const auto [forward, unused] =
      orders(pipeline, rank, pipeline.shape.micro_batches, WorkKind::backward);
  std::vector<Work> list = forward;
  for (auto work = forward.rbegin(); work != forward.rend(); ++work) {
    list.push_back({WorkKind::backward, work->micro, work->stage});
  }
  return list;
}

std::vector<Work> one_f_one_b_list(const Pipeline& pipeline, int rank) {
  const int group = group_of(pipeline);
  const Orders both = orders(pipeline, rank, group, WorkKind::backward);
  const std::size_t all = both.forward.size();
  const std::size_t warm = std::min<std::size_t>(all, warm_up(pipeline, rank, group).forwards);
  std::vector<Work> list(both.forward.begin(),
                         both.forward.begin() + static_cast<std::ptrdiff_t>(warm));
  for (std::size_t k = 0; k < all; ++k) {
    if (warm + k < all) list.push_back(both.forward[warm + k]);
    list.push_back(both.backward[k]);
  }
  return list;
}

std::vector<Work> split_backward_list(const Pipeline& pipeline, int rank) {
  const int group = group_of(pipeline);
  const Orders both = orders(pipeline, rank, group, WorkKind::input_gradient);
  const WarmUp warm_up_of_rank = warm_up(pipeline, rank, group);
  const std::size_t all = both.forward.size(), delay = warm_up_of_rank.delay;
  const std::size_t warm = std::min<std::size_t>(all, warm_up_of_rank.forwards);
  std::vector<Work> list(both.forward.begin(),
                         both.forward.begin() + static_cast<std::ptrdiff_t>(warm));
  const auto weights_of = [&](std::size_t k) {
    list.push_back({WorkKind::weight_gradient, both.backward[k].micro, both.backward[k].stage});
  };
  for (std::size_t k = 0; k < all; ++k) {
    if (warm + k < all) list.push_back(both.forward[warm + k]);
    list.push_back(both.backward[k]);
    if (k >= delay) weights_of(k - delay);
  }
  for (std::size_t k = all - std::min(all, delay); k < all; ++k) weights_of(k);
  return list;
}

}  // namespace zl
