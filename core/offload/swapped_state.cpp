#include "core/offload/swapped_state.h"

#include <algorithm>

namespace zl {

std::size_t buffer_sets(const OffloadConfig& offload, std::size_t tensors) {
  const std::size_t made = offload.optimizer_buffer_count / tensors;
  const std::size_t least = offload.pipeline_read || offload.pipeline_write ? 2 : 1;
  return std::max(made, least);
}

SwappedState::SwappedState(RankContext& context, const OffloadConfig& offload,
                           const OptimizerConfig& optimizer, const std::vector<SubGroup>& groups)
    : context_(context),
      offload_(offload),
      groups_(groups),
      first_moment_(has_first_moment(optimizer)),
      second_moment_(has_second_moment(optimizer)),
      files_(groups.size()) {
  std::int64_t largest = 0;
  std::size_t on_host = 0;
  for (const SubGroup& group : groups) {
    if (!group.on_host) continue;
    largest = std::max(largest, group.elements);
    ++on_host;
  }
  const std::size_t tensors = 1u + first_moment_ + second_moment_;
  sets_.resize(std::min(buffer_sets(offload_, tensors), on_host));
  for (Set& set : sets_) {
    for (std::size_t i = 0; i < tensors; ++i) {
      set.tensors.push_back(context.allocate_pages(DType::f32, largest, MemoryTag::staging,
                                                   {"optimizer swap buffer"},
                                                   host_space(offload_)));
    }
  }
}

std::vector<TensorView> SwappedState::parts(std::size_t group) const {
  std::vector<TensorView> parts;
  for (const Tensor& tensor : sets_[group % sets_.size()].tensors) {
    parts.push_back(tensor.view.flat(0, groups_[group].elements));
  }
  return parts;
}

StateViews SwappedState::state(std::size_t group) const {
  const std::vector<TensorView> all = parts(group);
  return {all[0], first_moment_ ? all[1] : TensorView{}, second_moment_ ? all[2] : TensorView{}};
}

void SwappedState::create(std::size_t group) {
  const std::vector<TensorView> all = parts(group);
  const ObjectLayout layout(std::vector<std::int64_t>(all.size(), all[0].bytes()),
                            offload_.aio.block_size);
  files_[group].object =
      context_.create_object("optimizer-" + std::to_string(group), layout, MemoryTag::optimizer);
  const EventId free = set_of(group).free;
  if (free < 0) return;
  context_.wait(StreamId::host, free);
  context_.wait(StreamId::compute, free);
}

void SwappedState::fetch(std::size_t group) {
  Set& set = set_of(group);
  if (set.holds != group) {
    if (!offload_.pipeline_read) {
      context_.wait(StreamId::file_in, context_.record(StreamId::host));
    }
    read(group);
  }
  context_.wait(StreamId::host, set.arrived);
  const std::size_t next = group + 1;
  const bool ahead = offload_.pipeline_read && next < groups_.size() && groups_[next].on_host;
  if (ahead && &set_of(next) != &set && set_of(next).holds != next) read(next);
}

void SwappedState::read(std::size_t group) {
  Set& set = set_of(group);
  if (set.free >= 0) context_.wait(StreamId::file_in, set.free);
  if (files_[group].written >= 0) context_.wait(StreamId::file_in, files_[group].written);
  context_.read_object(files_[group].object, parts(group));
  set.holds = group;
  set.arrived = context_.record(StreamId::file_in);
}

void SwappedState::store(std::size_t group) {
  Set& set = set_of(group);
  context_.wait(StreamId::file_out, context_.record(StreamId::host));
  context_.write_object(files_[group].object, parts(group));
  files_[group].written = set.free = context_.record(StreamId::file_out);
  set.holds = kNone;
  if (!offload_.pipeline_write) context_.wait(StreamId::host, set.free);
}

void SwappedState::release(std::size_t group, EventId read) {
  set_of(group).holds = kNone;
  set_of(group).free = read;
}

}  // namespace zl
