// The training engine of one rank: forward, backward and step under any ZeRO stage. A program that
// uses zerolab as a library holds a Session (initialize.h), which owns one. Ownership: owns model
// state; refers to the rank's context. Threads: one rank's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/data/data_source.h"
#include "core/model/objective.h"
#include "core/model/sparse_attention.h"
#include "core/model/stage.h"
#include "core/model/tensor_group.h"
#include "core/offload/host_step.h"
#include "core/offload/placement.h"
#include "core/optim/loss_scaler.h"
#include "core/optim/lr_schedule.h"
#include "core/optim/optimizer.h"
#include "core/pipeline/pipeline_plan.h"
#include "core/pipeline/stage_messages.h"
#include "core/rank/rank_context.h"
#include "core/train/strategy.h"
#include "core/zero/gradient_store.h"
#include "core/zero/weight_store.h"

namespace zl {

struct StepMetrics {
  double loss = 0;  // mean over ranks and micro-batches
  // Global L2 norm before clipping. -1: overflow, the step was skipped (fp16 only; elsewhere a norm
  // that is not finite is said as it is).
  double grad_norm = 0;
  double lr = 0;          // used by this step
  double loss_scale = 1;  // used by this step
  bool skipped = false;
  bool stop = false;             // some rank asked to stop
  std::int64_t peak_device = 0;  // bytes of this rank so far; filled by the rank program
};

// Sums over the targets that count, of all ranks.
struct Evaluation {
  double nll = 0;  // negative log-likelihood, in nats
  std::int64_t rows = 0;

  double mean() const { return rows == 0 ? 0 : nll / static_cast<double>(rows); }
};

class Engine : public Archived, private ParameterAccess {
 public:
  // Throws Error{invalid} on a model or strategy that cannot run, OutOfMemory when state does not
  // fit.
  // initial: a seed, which keys dropout too, or a source that outlives the constructor.
  // plan: plan_pipeline of the strategy, of which a world needs one; null: made here.
  Engine(RankContext& context, const ModelConfig& model, const Strategy& strategy,
         std::int64_t sequence_length, const InitialWeights& initial,
         std::shared_ptr<const PipelinePlan> plan = nullptr);
  ~Engine() override;

  // What a step is made of, for an executor: load, forward and backward of every micro-batch in the
  // order of schedule(), then step(). Micro-batches of a step count from 0.
  const Schedule& schedule() const {
    return plan_->schedules[static_cast<std::size_t>(context_.rank(Axis::pipeline))];
  }
  // chunk: of a pipeline's rank. The ids of a micro-batch of this rank: micro_batch *
  // sequence_length tokens and targets; of labels micro_batch targets.
  void load(int micro, Batch batch, int chunk = 0);
  void forward(int micro, int chunk = 0);
  void backward(int micro, int chunk = 0);
  // The halves of a backward, where the schedule has them apart.
  void input_gradient(int micro, int chunk);
  void weight_gradient(int micro, int chunk);
  // Between the ranks of a pipeline.
  void exchange(const Instruction& instruction);
  // The same for a program that has the coming micro-batch at hand.
  void forward(std::span<const std::int32_t> tokens, std::span<const std::int32_t> targets);
  void backward() { backward(chunks_.front().backwards); }
  // After gradient_accumulation micro-batches: reduce, clip, update. `stop`: this rank wants to end
  // after this step; every rank learns of it in the metrics. The host waits once, at the end, and
  // for the ids of each kUploadsUnderWay micro-batches; with a loss scale it asks for an overflow
  // before the update too. `overflows`: skip the update as if a gradient had, for a recording of a
  // run that did.
  StepMetrics step(bool stop = false, bool overflows = false);

  // Between steps: what a micro-batch of every rank says of the model, without dropout and without
  // a trace in what the training computes. Every rank must call it, and gets the same.
  Evaluation evaluate(const Batch& batch);
  // Between steps: what a model with labels says of each sequence of a micro-batch, [micro_batch]
  // [labels]; each rank has its own. Every rank must call it.
  std::vector<std::vector<float>> label_logits(const Batch& batch);
  // Over the data-parallel ranks; every rank must call it, with as many values.
  std::vector<double> summed(const std::vector<double>& values);

  const ParameterTable& parameters() const { return table_; }
  const Partition& partition() const { return partition_; }
  const Strategy& strategy() const { return strategy_; }
  RankContext& context() { return context_; }
  // The whole fp32 value of a parameter, gathered from all ranks; every rank must call it.
  std::vector<float> gather_parameter(int parameter);
  // Rank 0 takes each parameter of the model in its order, those of all stages; every rank must
  // call it.
  using TakeParameter = std::function<void(const ParameterSpec&, std::vector<float> values)>;
  void gather_model(const TakeParameter& take);
  std::int64_t steps() const override { return step_; }
  // As Optimizer::step_kind and skip, for the recording device. `overflows`: as step.
  int step_kind() const { return host_step_ ? host_step_->step_kind() : optimizer_->step_kind(); }
  void skip_step(bool overflows);
  // As if so many micro-batches had gone forward and backward: those on their way count as of so
  // many later. For the recording device.
  void skip_micro_batches(int count);
  void archive(StateArchive& archive) override;

 private:
  void enter(int unit, Pass pass) override { weights_->enter(unit, pass); }
  void leave(int unit, Pass pass) override { weights_->leave(unit, pass); }
  TensorView weight(int parameter) override { return weights_->weight(parameter); }
  GradientTarget gradient(int parameter) override { return gradients_->target(parameter); }
  void gradient_ready(int parameter) override { gradients_->ready(parameter); }

  // Gradients of fp16 underflow and overflow; those of bf16 have the range of fp32.
  static bool scales_loss(const Strategy& strategy);
  void make_optimizer(const InitialWeights& initial);
  bool averages_gradients() const { return !optimizer_ || optimizer_->averages_gradients(); }
  // A place for a micro-batch on its way; its ids on the device serve one after the other.
  struct Slot {
    Tensor tokens, targets, segments, lengths;  // the last two: of an encoder
    MicroBatch micro;
  };
  // A stage of the model on this rank, and its micro-batches on their way.
  struct Chunk {
    int stage = 0;  // of the whole pipeline
    int last_unit = 0;
    int first_parameter = 0, end_parameter = 0;  // of the rank's
    std::vector<Slot> slots;
    int forwards = 0, backwards = 0, weight_gradients = 0;  // of this step
    int skipped = 0;                                        // of these

    Slot& slot(int micro) {
      return slots[static_cast<std::size_t>(micro - skipped) % slots.size()];
    }
  };
  void make_stages();
  void make_sparse_attention();
  void make_slots();
  // What is traced from here on belongs to the coming step.
  void enter_step() { context_.scope().step = static_cast<std::int32_t>(step_ - first_step_ + 1); }
  void pass_message(const Instruction& instruction);
  bool is_first(const Chunk& chunk) const { return chunk.stage == 0; }
  bool is_last(const Chunk& chunk) const { return chunk.stage + 1 == pipeline_.stages(); }
  bool is_whole_model() const { return pipeline_.stages() == 1; }
  void upload(Slot& slot, Batch batch);
  void begin_gradients(int before);
  void end_gradients(Chunk& own, bool completes);
  void run_backward(int micro, Chunk& own, std::size_t chunk, void (Stage::*half)(MicroBatch&));
  void take_stream(const Chunk& chunk, int micro, MicroBatch& batch);
  void leave_stream(const Chunk& chunk, int micro, MicroBatch& batch);
  void evaluate_chunk(std::size_t chunk, const Batch& batch, const TensorView& nll);
  // Whether the head is a copy of the embedding, of this or another rank.
  bool has_tied_copy() const { return model_.ties_head() && table_.head >= 0 && !table_.tied(); }
  std::vector<float> gather_tensor(int parameter, const std::vector<float>& part);
  // The gradient of a tied weight that first and last stage hold each, added up on both.
  void add_tied_gradients();
  Tensor on_device(int parameter);
  void put_back(int parameter, const Tensor& gradient);
  void pass_to_first(std::vector<float>& values, int owner);
  BatchGeometry geometry(int micro) const;
  BatchGeometry evaluation_geometry(const Slot& slot) const;
  void follow_evaluation();
  std::vector<TensorView> reduction_ranges();
  // The elements of a parameter's owned gradient that count in the norm: no copies of others'.
  TensorView counted_gradient(int parameter);
  std::vector<TensorView> counted_on_host();
  // Over data and, of a pipeline, over the stages; over a tensor group.
  void reduce_scalar(const TensorView& value, ReduceOp op);
  void find_bound();
  void reduce_squares();
  StepScalars scalars(const StepMetrics& metrics, double unscale);
  void update(const StepScalars& scalars);
  // How many gradients' squares a step adds up: the ranks have one, or each its own.
  double gradients_in_norm() const { return averages_gradients() ? 1 : context_.ranks(Axis::data); }
  void read_metrics(StepMetrics& metrics, double gradients);

  RankContext& context_;
  ModelConfig model_;
  Strategy strategy_;
  TensorGroup tensor_;
  ModelConfig rank_model_;  // what of it this rank of the tensor group has
  std::int64_t sequence_length_;
  std::unique_ptr<SparseAttention> sparse_;  // null: attention without blocks
  std::uint64_t seed_;
  std::shared_ptr<const PipelinePlan> plan_;
  const Pipeline& pipeline_;      // the plan's
  std::vector<UnitRange> units_;  // of the stages of the pipeline
  ParameterTable table_;          // of this rank
  Partition partition_;
  std::int64_t model_elements_;  // of the whole model, padded
  Placement placement_;
  Objective objective_;
  std::vector<std::unique_ptr<Stage>> stages_;  // of this rank
  std::vector<Chunk> chunks_;                   // of each of them
  StageMessages messages_;
  std::unique_ptr<WeightStore> weights_;
  std::unique_ptr<GradientStore> gradients_;
  std::unique_ptr<Optimizer> optimizer_;  // null: all is updated by the host
  std::unique_ptr<HostStep> host_step_;
  LrSchedule learning_rate_;
  LossScaler scaler_;

  Tensor loss_, bound_, squares_;
  // Uploads in flight, until the step ends or there are as many.
  static constexpr std::size_t kUploadsUnderWay = 64;
  std::vector<Batch> host_batches_;
  std::int64_t step_ = 0, first_step_ = 0;  // traces count steps after the first
};

}  // namespace zl
