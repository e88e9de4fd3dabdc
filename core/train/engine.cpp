#include "core/train/engine.h"

#include <utility>

#include "core/base/error.h"
#include "core/model/tensor_model.h"
#include "core/ops/elementwise.h"

namespace zl {

namespace {

std::shared_ptr<const PipelinePlan> plan_of(const Strategy& strategy, const Mesh& mesh,
                                            std::shared_ptr<const PipelinePlan> given) {
  if (mesh.pipeline != strategy.pipeline.ranks) {
    throw Error(ErrorCode::invalid,
                "parallel.pipeline: " + std::to_string(strategy.pipeline.ranks) +
                    " is not the mesh's " + std::to_string(mesh.pipeline));
  }
  if (given == nullptr) return plan_pipeline(strategy.pipeline, strategy.gradient_accumulation);
  ZL_CHECK(static_cast<std::int64_t>(given->schedules.size()) == strategy.pipeline.ranks,
           "the plan of a pipeline is of the strategy's");
  return given;
}

TensorShard tensor_shard(const RankContext& context, const TensorConfig& config) {
  return {context.ranks(Axis::tensor), context.rank(Axis::tensor), config.sequence_parallel};
}

void check_encoder(const ModelConfig& model, const Strategy& strategy) {
  if (const std::string conflict = encoder_conflict(model, strategy); !conflict.empty()) {
    throw Error(ErrorCode::invalid, conflict);
  }
}

void check_tensor_of(const Strategy& strategy, const ModelConfig& model, std::int64_t sequence,
                     const Mesh& mesh) {
  if (mesh.tensor != strategy.tensor.ranks) {
    throw Error(ErrorCode::invalid, "parallel.tensor: " + std::to_string(strategy.tensor.ranks) +
                                        " is not the mesh's " + std::to_string(mesh.tensor));
  }
  check_encoder(model, strategy);
  check_tensor(model, strategy.tensor, sequence);
  check_sparse_attention(strategy, model, sequence);
  for (const std::string& conflict : {tensor_conflict(strategy), replicas_conflict(strategy),
                                      secondary_conflict(strategy), recompute_conflict(strategy)}) {
    if (!conflict.empty()) throw Error(ErrorCode::invalid, conflict);
  }
}

// Of the model, where a rank can have it; what cannot be cut is said by check_tensor.
ModelConfig rank_model(const ModelConfig& model, const Strategy& strategy, std::int64_t sequence,
                       const RankContext& context) {
  check_tensor_of(strategy, model, sequence, context.mesh());
  return shard_of(model, tensor_shard(context, strategy.tensor));
}

}  // namespace

bool Engine::scales_loss(const Strategy& strategy) {
  return strategy.precision.compute_dtype == DType::f16;
}

Engine::Engine(RankContext& context, const ModelConfig& model, const Strategy& strategy,
               std::int64_t sequence_length, const InitialWeights& initial,
               std::shared_ptr<const PipelinePlan> plan)
    : context_(context),
      model_(model),
      strategy_(strategy),
      tensor_(context, tensor_shard(context, strategy.tensor), strategy.tensor.overlap),
      rank_model_(rank_model(model, strategy, sequence_length, context)),
      sequence_length_(sequence_length),
      seed_(initial.seed),
      plan_(plan_of(strategy, context.mesh(), std::move(plan))),
      pipeline_(plan_->pipeline),
      units_(split_units(model, strategy.pipeline)),
      table_(parameters_of(model, strategy, context.rank(Axis::pipeline), tensor_.shard())),
      partition_(table_.counts(), context.ranks(Axis::shard), context.rank(Axis::shard)),
      model_elements_(
          Partition(ParameterTable(model).counts(), partition_.ranks(), 0).full_elements()),
      placement_(partition_, strategy.offload),
      objective_{model.head},
      messages_(context, pipeline_),
      learning_rate_(strategy.schedule, strategy.optimizer),
      scaler_(strategy.loss_scaler,
              scales_loss(strategy) && strategy.loss_scaler.static_scale == 0) {
  check_offload(strategy_);
  ScopeGuard scope(context_, Phase::init, -1);
  make_stages();
  make_sparse_attention();
  const StoreConfig stores{strategy_.zero, strategy_.precision, strategy_.offload, placement_,
                           strategy_.gradient_accumulation};
  weights_ = make_weight_store(context_, stores, table_, partition_, schedule().visits(stages_));
  gradients_ = make_gradient_store(context_, stores, table_, partition_);
  make_slots();
  const auto staging = [&](DType dtype, std::int64_t count, const char* what) {
    return context_.allocate(dtype, Shape{count}, MemoryTag::staging, {what});
  };
  loss_ = staging(DType::f32, 2, "loss and stop vote");
  bound_ = staging(DType::f32, 1, "largest gradient");
  squares_ = staging(DType::f64, 3, "squared norm");
  context_.run(Fill{loss_.view, 0});
  weights_->initialize(initial);
  make_optimizer(initial);
}

Engine::~Engine() {
  // Weights may still be arriving; their buffers must outlive that.
  try {
    context_.synchronize(StreamId::communication);
  } catch (const std::exception&) {
    // The error that ends the run was thrown where it happened.
  }
}

void Engine::make_optimizer(const InitialWeights& initial) {
  std::vector<UpdateRange> ranges;
  const int on_device = placement_.first_on_host();
  const bool whole = strategy_.zero.stage == 0;
  if (gradients_->host() != nullptr) {
    host_step_ = std::make_unique<HostStep>(context_, strategy_.offload, strategy_.optimizer,
                                            strategy_.precision, table_, partition_, placement_,
                                            *weights_, *gradients_->host(), initial);
  }
  for (int p = 0; p < on_device; ++p) {
    ranges.push_back({weights_->owned(p), gradients_->owned(p), p,
                      whole ? std::int64_t{0} : partition_.owned_begin(p), table_.specs[p].number});
  }
  if (ranges.empty()) return;
  if (const std::string conflict = stage_conflict(strategy_); !conflict.empty()) {
    throw Error(ErrorCode::invalid, "strategy.zero_stage: " + conflict);
  }
  optimizer_ = zl::make_optimizer(context_, strategy_.optimizer, std::move(ranges), whole,
                                  partition_, gradients_->local(),
                                  {strategy_.precision.stochastic_rounding, initial.seed});
  if (!optimizer_->has_masters()) return;
  // Masters hold the fp32 draw that the 16-bit weights are rounded from.
  for (std::size_t i = 0; i < static_cast<std::size_t>(on_device); ++i) {
    const int p = static_cast<int>(i);
    const std::int64_t begin = whole ? 0 : partition_.owned_begin(p);
    const std::int64_t count = whole ? partition_.slot(p).count : partition_.owned_count(p);
    if (count == 0) continue;
    draw_initial(context_, table_.specs[i], initial, begin, optimizer_->master(i).flat(0, count));
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
      .row_part = tensor_.shard().cuts_rows() ? tensor_.shard().rank : 0,
      .sparse = sparse_.get()};
}

void Engine::upload(Slot& slot, Batch batch) {
  // What a source leaves out: there is no padding, and one text.
  if (batch.lengths.empty()) {
    batch.lengths.assign(static_cast<std::size_t>(strategy_.micro_batch),
                         static_cast<std::int32_t>(sequence_length_));
  }
  if (batch.segments.empty()) batch.segments.assign(batch.tokens.size(), 0);
  // No part of the program that is traced: it says nothing but that the copies are done.
  if (host_batches_.size() == kUploadsUnderWay) {
    context_.device().synchronize(StreamId::compute);
    host_batches_.clear();
  }
  Batch& kept = host_batches_.emplace_back(std::move(batch));
  const auto send = [&](const Tensor& ids, const std::vector<std::int32_t>& values) {
    if (ids.view.empty()) return;
    ZL_CHECK(static_cast<std::int64_t>(values.size()) == ids.view.count(),
             "a micro-batch has micro_batch * sequence_length tokens, and a target for each or, "
             "of labels, for each sequence");
    context_.upload(StreamId::compute, ids, values.data());
  };
  send(slot.tokens, kept.tokens);
  send(slot.targets, kept.targets);
  send(slot.segments, kept.segments);
  send(slot.lengths, kept.lengths);
  slot.micro.ids = {slot.tokens, slot.targets, slot.segments};
  slot.micro.loss.counted_rows = objective_.counted_rows(
      kept.targets, kept.step_rows, strategy_.gradient_accumulation * context_.ranks(Axis::data));
}

void Engine::load(int micro, Batch batch, int chunk) {
  ScopeGuard scope(context_, Phase::forward, -1, micro, chunk);
  enter_step();
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
  ScopeGuard scope(context_, Phase::forward, -1, micro, chunk);
  enter_step();
  MicroBatch& batch = own.slot(micro).micro;
  const double weight = 1.0 / static_cast<double>(strategy_.gradient_accumulation);
  batch.geometry = geometry(micro);
  batch.geometry.lengths = own.slot(micro).lengths;
  batch.loss.sum = loss_.view.flat(0, 1);
  batch.loss.weight = weight;
  batch.loss.gradient_scale = weight * scaler_.scale();
  take_stream(own, micro, batch);
  stages_[chunk]->forward(batch);
  leave_stream(own, micro, batch);
  ++own.forwards;
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
    chunk.weight_gradients += count;
    chunk.skipped += count;
  }
  messages_.skip(count);
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

}  // namespace zl
