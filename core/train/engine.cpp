#include "core/train/engine.h"

#include <utility>

#include "core/base/error.h"
#include "core/model/tensor_model.h"
#include "core/ops/elementwise.h"

namespace zl {

namespace {

Pipeline pipeline_of(const Strategy& strategy) {
  const PipelineConfig& config = strategy.pipeline;
  PipelineShape shape{.ranks = static_cast<int>(config.ranks),
                      .micro_batches = static_cast<int>(strategy.gradient_accumulation),
                      .chunks = static_cast<int>(config.virtual_stages)};
  // A whole model runs one micro-batch after the other, which no list needs to say.
  if (shape.ranks * shape.chunks == 1) return {.shape = {}, .work = {}};
  return make_pipeline(config.schedule, shape);
}

ParameterTable own_table(const ModelConfig& model, const TensorShard& shard,
                         const Pipeline& pipeline, const std::vector<UnitRange>& units, int rank) {
  const ParameterTable whole(model, shard);
  return whole.part(units_of_rank(pipeline, units, rank, whole.units()));
}

TensorShard tensor_shard(const RankContext& context, const TensorConfig& config) {
  return {context.ranks(Axis::tensor), context.rank(Axis::tensor), config.sequence_parallel};
}

void check_tensor_of(const Strategy& strategy, const ModelConfig& model, std::int64_t sequence,
                     const Mesh& mesh) {
  if (mesh.tensor != strategy.tensor.ranks) {
    throw Error(ErrorCode::invalid, "parallel.tensor: " + std::to_string(strategy.tensor.ranks) +
                                        " is not the mesh's " + std::to_string(mesh.tensor));
  }
  check_tensor(model, strategy.tensor, sequence);
  for (const std::string& conflict : {tensor_conflict(strategy), replicas_conflict(strategy)}) {
    if (!conflict.empty()) throw Error(ErrorCode::invalid, conflict);
  }
}

// Of the model, where a rank can have it; what cannot be cut is said by check_tensor.
ModelConfig rank_model(const ModelConfig& model, const Strategy& strategy, std::int64_t sequence,
                       const RankContext& context) {
  check_tensor_of(strategy, model, sequence, context.mesh());
  return shard_of(model, tensor_shard(context, strategy.tensor));
}

void check_pipeline_of(const Strategy& strategy, const ModelConfig& model, const Mesh& mesh) {
  if (mesh.pipeline != strategy.pipeline.ranks) {
    throw Error(ErrorCode::invalid,
                "parallel.pipeline: " + std::to_string(strategy.pipeline.ranks) +
                    " is not the mesh's " + std::to_string(mesh.pipeline));
  }
  if (mesh.pipeline > 1 && model.tied_embeddings && strategy.offload.optimizer != Tier::device) {
    throw Error(ErrorCode::invalid,
                "parallel.pipeline: the tied embedding's gradient is on the host under "
                "offload_optimizer, where its two stages cannot add it up; use a model with "
                "tied_embeddings false, or no offload_optimizer");
  }
}

}  // namespace

bool Engine::scales_loss(const Strategy& strategy) {
  return strategy.precision.compute_dtype == DType::f16;
}

Engine::Engine(RankContext& context, const ModelConfig& model, const Strategy& strategy,
               std::int64_t sequence_length, std::uint64_t seed)
    : context_(context),
      model_(model),
      strategy_(strategy),
      tensor_(context, tensor_shard(context, strategy.tensor)),
      rank_model_(rank_model(model, strategy, sequence_length, context)),
      sequence_length_(sequence_length),
      seed_(seed),
      pipeline_(pipeline_of(strategy)),
      units_(split_units(model.layers, strategy.pipeline)),
      table_(own_table(model, tensor_.shard(), pipeline_, units_, context.rank(Axis::pipeline))),
      partition_(table_.counts(), context.ranks(Axis::shard), context.rank(Axis::shard)),
      model_elements_(
          Partition(ParameterTable(model).counts(), partition_.ranks(), 0).full_elements()),
      placement_(partition_, strategy.offload),
      schedule_(is_whole_model() ? whole_model_schedule(strategy.gradient_accumulation)
                                 : pipeline_schedule(pipeline_, context.rank(Axis::pipeline))),
      messages_(context, pipeline_),
      learning_rate_(strategy.schedule, strategy.optimizer),
      scaler_(strategy.loss_scaler,
              scales_loss(strategy) && strategy.loss_scaler.static_scale == 0) {
  check_offload(strategy_);
  check_pipeline_of(strategy_, model_, context_.mesh());
  ScopeGuard scope(context_, Phase::init, -1);
  make_stages();
  const StoreConfig stores{strategy_.zero, strategy_.precision, strategy_.offload, placement_,
                           strategy_.gradient_accumulation};
  weights_ = make_weight_store(context_, stores, table_, partition_, schedule_.visits(stages_));
  gradients_ = make_gradient_store(context_, stores, table_, partition_);
  make_slots();
  const auto staging = [&](DType dtype, std::int64_t count, const char* what) {
    return context_.allocate(dtype, Shape{count}, MemoryTag::staging, {what});
  };
  loss_ = staging(DType::f32, 2, "loss and stop vote");
  bound_ = staging(DType::f32, 1, "largest gradient");
  squares_ = staging(DType::f64, 3, "squared norm");
  context_.run(Fill{loss_.view, 0});
  weights_->initialize(seed);
  make_optimizer(seed);
}

Engine::~Engine() {
  // Weights may still be arriving; their buffers must outlive that.
  try {
    context_.synchronize(StreamId::communication);
  } catch (const std::exception&) {
    // The error that ends the run was thrown where it happened.
  }
}

void Engine::make_optimizer(std::uint64_t seed) {
  std::vector<UpdateRange> ranges;
  const int on_device = placement_.first_on_host();
  const bool whole = strategy_.zero.stage == 0;
  if (gradients_->host() != nullptr) {
    host_step_ = std::make_unique<HostStep>(context_, strategy_.offload, strategy_.optimizer,
                                            strategy_.precision, table_, partition_, placement_,
                                            *weights_, *gradients_->host(), seed);
  }
  for (int p = 0; p < on_device; ++p) {
    ranges.push_back({weights_->owned(p), gradients_->owned(p), p,
                      whole ? std::int64_t{0} : partition_.owned_begin(p), table_.specs[p].number});
  }
  if (ranges.empty()) return;
  if (const std::string conflict = stage_conflict(strategy_); !conflict.empty()) {
    throw Error(ErrorCode::invalid, "strategy.zero_stage: " + conflict);
  }
  optimizer_ =
      zl::make_optimizer(context_, strategy_.optimizer, std::move(ranges), whole, partition_,
                         gradients_->local(), {strategy_.precision.stochastic_rounding, seed});
  if (!optimizer_->has_masters()) return;
  // Masters hold the fp32 draw that the 16-bit weights are rounded from.
  for (std::size_t i = 0; i < static_cast<std::size_t>(on_device); ++i) {
    const int p = static_cast<int>(i);
    const std::int64_t begin = whole ? 0 : partition_.owned_begin(p);
    const std::int64_t count = whole ? partition_.slot(p).count : partition_.owned_count(p);
    if (count == 0) continue;
    draw_initial(context_, table_.specs[i], seed, begin, optimizer_->master(i).flat(0, count));
  }
}

BatchGeometry Engine::geometry(int micro) const {
  return {
      .batch = strategy_.micro_batch,
      .sequence = sequence_length_,
      .dtype = strategy_.precision.compute_dtype,
      .seed = seed_,
      .micro_step = static_cast<std::uint32_t>(step_ * strategy_.gradient_accumulation + micro + 1),
      .first_sample = context_.rank(Axis::data) * strategy_.micro_batch,
      .row_parts = tensor_.shard().cuts_rows() ? tensor_.shard().ranks : 1,
      .row_part = tensor_.shard().cuts_rows() ? tensor_.shard().rank : 0};
}

void Engine::upload(Slot& slot, Batch batch) {
  const auto rows = static_cast<std::size_t>(slot.tokens.view.count());
  ZL_CHECK(batch.tokens.size() == rows && batch.targets.size() == rows,
           "a micro-batch has micro_batch * sequence_length tokens and targets");
  const Batch& kept = host_batches_.emplace_back(std::move(batch));
  context_.upload(StreamId::compute, slot.tokens, kept.tokens.data());
  context_.upload(StreamId::compute, slot.targets, kept.targets.data());
  slot.micro.ids = {slot.tokens, slot.targets};
  slot.micro.loss.counted_rows = objective_.counted_rows(kept.targets);
}

void Engine::load(int micro, Batch batch, int chunk) {
  ScopeGuard scope(context_, Phase::forward, -1);
  context_.scope().step = static_cast<std::int32_t>(step_ - first_step_ + 1);
  upload(chunks_[chunk].slot(micro), std::move(batch));
}

void Engine::forward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets) {
  ZL_CHECK(is_whole_model(), "a pipeline's micro-batches are run by its schedule");
  const int micro = chunks_.front().forwards;
  load(micro, {{tokens.begin(), tokens.end()}, {targets.begin(), targets.end()}});
  forward(micro);
}

void Engine::forward(int micro, int chunk) {
  Chunk& own = chunks_[chunk];
  ZL_CHECK(own.forwards < strategy_.gradient_accumulation,
           "step() is due: gradient_accumulation micro-batches are done");
  ScopeGuard scope(context_, Phase::forward, -1);
  context_.scope().step = static_cast<std::int32_t>(step_ - first_step_ + 1);
  MicroBatch& batch = own.slot(micro).micro;
  const double weight = 1.0 / static_cast<double>(strategy_.gradient_accumulation);
  batch.geometry = geometry(micro);
  batch.loss.sum = loss_.view.flat(0, 1);
  batch.loss.weight = weight;
  batch.loss.gradient_scale = weight * scaler_.scale();
  take_stream(own, micro, batch);
  stages_[chunk]->forward(batch);
  leave_stream(own, micro, batch);
  ++own.forwards;
}

void Engine::backward(int micro, int chunk) {
  Chunk& own = chunks_[chunk];
  ScopeGuard scope(context_, Phase::backward, -1);
  gradients_->set_averaging(averages_gradients());
  gradients_->begin_micro_batch(own.backwards == 0,
                                own.backwards + 1 == strategy_.gradient_accumulation);
  MicroBatch& batch = own.slot(micro).micro;
  if (!is_last(own)) batch.gradient = messages_.take({own.stage, micro, false});
  stages_[chunk]->backward(batch);
  Tensor gradient = std::move(batch.gradient);
  batch.gradient = {};
  if (!is_first(own)) messages_.hand_over({own.stage - 1, micro, false}, std::move(gradient));
  gradients_->end_micro_batch();
  ++own.backwards;
}

void Engine::skip_step(bool overflows) {
  ++step_;
  if (overflows) return;
  if (optimizer_) optimizer_->skip();
  if (host_step_) host_step_->skip();
  learning_rate_.step();
}

void Engine::skip_micro_batches(int count) {
  for (Chunk& chunk : chunks_) {
    chunk.forwards += count;
    chunk.backwards += count;
  }
}

void Engine::archive(StateArchive& archive) {
  ZL_CHECK(chunks_.front().forwards == 0, "checkpoints are of whole steps");
  archive.integer("engine.steps", step_);
  std::int64_t index = learning_rate_.index();
  archive.integer("schedule.index", index);
  learning_rate_.restore(index);
  LossScaler::State scale = scaler_.state();
  archive.number("loss_scale.scale", scale.scale);
  archive.integer("loss_scale.hysteresis_left", scale.hysteresis_left);
  archive.integer("loss_scale.last_overflow", scale.last_overflow);
  archive.integer("loss_scale.iteration", scale.iteration);
  scaler_.restore(scale);
  for (const StreamId stream :
       {StreamId::compute, StreamId::communication, StreamId::copy_in, StreamId::host}) {
    context_.synchronize(stream);
  }
  for (int p = 0; p < static_cast<int>(partition_.size()); ++p) {
    weights_->archive(archive, p, "weights." + table_.specs[p].name);
  }
  if (optimizer_) optimizer_->archive(archive, "optimizer.");
  if (host_step_) host_step_->archive(archive);
  if (!archive.restores()) return;
  first_step_ = step_;
  weights_->gather_updated();
}

double Engine::evaluate(const Batch& batch) {
  ZL_CHECK(chunks_.front().forwards == 0, "evaluation comes between steps");
  ScopeGuard scope(context_, Phase::other, -1);
  Tensor loss = context_.allocate(DType::f32, Shape{1}, MemoryTag::staging, {"evaluation loss"});
  context_.run(Fill{loss, 0});
  std::vector<Visit> visits;
  for (const auto& stage : stages_) {
    const std::vector<Visit> own = stage->evaluation_visits();
    visits.insert(visits.end(), own.begin(), own.end());
  }
  weights_->follow(visits);
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    evaluate_chunk(chunk, batch, loss);
  }
  weights_->follow(schedule_.visits(stages_));
  reduce_scalar(loss, ReduceOp::average);
  const double mean = context_.read(ProbeKind::loss, loss);
  host_batches_.clear();
  return mean;
}

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

}  // namespace zl
