// Weights of an engine, whole, from the ranks that have their parts.
#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/train/engine.h"

namespace zl {

std::vector<float> Engine::gather_parameter(int parameter) {
  const Partition::Slot& slot = partition_.slot(parameter);
  const bool hosted = gradients_->host() != nullptr && gradients_->host()->holds(parameter);
  std::vector<float> values(slot.padded);
  Tensor whole;
  TensorView own, source;
  if (!hosted) source = own = optimizer_->master(static_cast<std::size_t>(parameter));
  if (strategy_.zero.stage > 0) {
    whole = context_.allocate(DType::f32, Shape{slot.padded}, MemoryTag::staging, {"gathered"});
    if (hosted) {
      own = partition_.own_chunk(whole);
      host_step_->read_master(parameter, own);
    }
    const Segment segment{own, whole};
    context_.collective(StreamId::compute, {CollectiveKind::all_gather,
                                            ReduceOp::sum,
                                            Purpose::data,
                                            {&segment, 1},
                                            context_.mesh().sharding()});
    source = whole;
  }
  context_.download(StreamId::compute, values.data(), source);
  context_.synchronize(StreamId::compute);
  values.resize(slot.count);
  return tensor_.has_others() ? gather_tensor(parameter, values) : values;
}

// The whole parameter from the parts of all ranks of the tensor group.
std::vector<float> Engine::gather_tensor(int parameter, const std::vector<float>& part) {
  const auto count = static_cast<std::int64_t>(part.size());
  const int ranks = tensor_.shard().ranks, number = table_.specs[parameter].number;
  Tensor all = context_.allocate(DType::f32, Shape{count * ranks}, MemoryTag::staging,
                                 {"gathered over the tensor group"});
  const TensorView own = all.view.flat(count * tensor_.shard().rank, count);
  context_.upload(StreamId::compute, own, part.data());
  const Segment segment{own, all};
  context_.collective(
      StreamId::compute,
      {CollectiveKind::all_gather, ReduceOp::sum, Purpose::data, {&segment, 1}, Axis::tensor});
  std::vector<float> values(count * ranks);
  context_.download(StreamId::compute, values.data(), all);
  context_.synchronize(StreamId::compute);
  std::vector<float> whole(ParameterTable(model_).specs[number].count());
  for (int rank = 0; rank < ranks; ++rank) {
    const ParameterTable table(model_, {ranks, rank, false});
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = table.specs[number].place(i);
      if (place >= 0) whole[place] = values[rank * count + i];
    }
  }
  return whole;
}

// From stage to stage in the order of the model: the stage of a parameter sends, the first takes.
void Engine::gather_model(const TakeParameter& take) {
  const int rank = context_.rank(Axis::pipeline);
  for (const ParameterSpec& spec : ParameterTable(model_).specs) {
    const auto stage = std::ranges::find_if(units_, [&](const UnitRange& units) {
      return units.begin <= spec.unit && spec.unit < units.end;
    });
    const int owner = pipeline_.rank_of(static_cast<int>(stage - units_.begin()));
    const auto own = std::ranges::find(table_.specs, spec.name, &ParameterSpec::name);
    std::vector<float> values(spec.count());
    if (rank == owner) values = gather_parameter(static_cast<int>(own - table_.specs.begin()));
    if (owner != 0 && (rank == owner || rank == 0)) pass_to_first(values, owner);
    if (context_.rank() == 0) take(spec, std::move(values));
  }
}

void Engine::pass_to_first(std::vector<float>& values, int owner) {
  const Tensor tensor =
      context_.allocate(DType::f32, Shape{static_cast<std::int64_t>(values.size())},
                        MemoryTag::staging, {"weight of another stage"});
  const bool sends = context_.rank(Axis::pipeline) == owner;
  if (sends) context_.upload(StreamId::compute, tensor, values.data());
  const Message message{.peer = sends ? 0 : owner, .sends = sends, .tensor = tensor};
  context_.exchange(StreamId::compute, Axis::pipeline, {&message, 1});
  if (!sends) context_.download(StreamId::compute, values.data(), tensor);
  context_.synchronize(StreamId::compute);
}

}  // namespace zl
