#include "core/zero/tensor_gradients.h"

#include "core/ops/elementwise.h"

namespace zl {
namespace {

// Ranks [begin, end) of the tensor group hold one copy each.
struct Copies {
  int begin = 0, end = 0;
};

Copies copies_with(const RankContext& context, const ParameterTable& table) {
  const int copies = table.kv_copies(), rank = context.rank(Axis::tensor);
  const int begin = rank / copies * copies;
  return {begin, begin + copies};
}

// Every copy to every other rank that has one, and added up in the order of the ranks.
void add_up(RankContext& context, StreamId stream, const Copies& copies,
            const std::vector<TensorView>& own, std::vector<Tensor>& storage) {
  const int rank = context.rank(Axis::tensor);
  std::vector<Message> messages;
  std::vector<std::vector<TensorView>> from(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (int peer = copies.begin; peer < copies.end; ++peer) {
      if (peer == rank) {
        from[i].push_back(own[i]);
        continue;
      }
      storage.push_back(context.allocate(own[i].dtype, own[i].shape, MemoryTag::communication,
                                         {"gradient of another copy"}));
      from[i].push_back(storage.back());
      messages.push_back({.peer = peer, .sends = true, .tensor = own[i]});
      messages.push_back({.peer = peer, .sends = false, .tensor = storage.back()});
    }
  }
  context.exchange(stream, Axis::tensor, messages);
  for (std::size_t i = 0; i < own.size(); ++i) {
    storage.push_back(context.allocate(own[i].dtype, own[i].shape, MemoryTag::communication,
                                       {"sum of the copies"}));
    const TensorView sum = storage.back();
    for (std::size_t part = 0; part < from[i].size(); ++part) {
      context.run(stream, Axpy{.x = from[i][part], .y = sum, .accumulate = part > 0});
    }
    context.run(stream, Axpy{.x = sum, .y = own[i]});
  }
}

}  // namespace

std::vector<Tensor> sum_copies(RankContext& context, StreamId stream, const ParameterTable& table,
                               const std::vector<WholeGradient>& gradients) {
  std::vector<Tensor> storage;
  std::vector<Segment> everywhere;
  std::vector<TensorView> on_some;
  for (const WholeGradient& each : gradients) {
    const ParameterSpec& spec = table.specs[each.parameter];
    const TensorView own = each.view.flat(0, spec.count());
    if (spec.summed) everywhere.push_back({own, own});
    if (spec.copied > 0) on_some.push_back(own.flat(spec.count() - spec.copied, spec.copied));
  }
  if (!everywhere.empty()) {
    context.collective(stream, {CollectiveKind::all_reduce, ReduceOp::sum, Purpose::data,
                                everywhere, Axis::tensor});
  }
  if (!on_some.empty()) {
    add_up(context, stream, copies_with(context, table), on_some, storage);
  }
  return storage;
}

}  // namespace zl
