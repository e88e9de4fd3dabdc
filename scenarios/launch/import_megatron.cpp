#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "scenarios/launch/foreign_keys.h"
#include "scenarios/launch/learning_rates.h"
#include "scenarios/launch/megatron.h"
#include "scenarios/launch/megatron_arguments.h"
#include "scenarios/launch/megatron_keys.h"
#include "scenarios/launch/own_keys.h"

namespace zl {
namespace {

constexpr std::int64_t kBucket = 40'000'000, kBucketOfRank = 1'000'000;
constexpr std::int64_t kMost = 1'000'000'000'000;

constexpr char kEmbeddingCounts[] = "--account-for-embedding-in-pipeline-split";
constexpr char kLossCounts[] = "--account-for-loss-in-pipeline-split";

constexpr ForeignName kMegatronNames[] = {
    {"x-zerolab.parallel.tensor", "--tensor-model-parallel-size"},
    {"x-zerolab.parallel.pipeline", "--pipeline-model-parallel-size"},
    {"x-zerolab.parallel.virtual_stages", "--num-virtual-stages-per-pipeline-rank"},
    {"x-zerolab.parallel.schedule", "--num-virtual-stages-per-pipeline-rank"},
    {"x-zerolab.parallel.replicate", "--num-distributed-optimizer-instances"},
    {"train_batch_size", "--global-batch-size"},
    {"gradient_accumulation_steps", "--global-batch-size"},
    {"train_micro_batch_size_per_gpu", "--micro-batch-size"}};

class MegatronReader {
 public:
  MegatronReader(ForeignKeys& keys, const ImportContext& context)
      : keys_(keys), context_(context) {}

  Strategy read() {
    read_mesh();
    read_batch();
    read_zero();
    read_recompute();
    read_precision();
    read_optimizer();
    return std::move(out_);
  }

  std::int64_t ranks() const { return ranks_; }

 private:
  void read_mesh() {
    out_.tensor.ranks = keys_.degree("--tensor-model-parallel-size");
    out_.tensor.sequence_parallel = keys_.flag("--sequence-parallel") && out_.tensor.ranks > 1;
    read_tensor_overlap();
    out_.pipeline.ranks = keys_.degree("--pipeline-model-parallel-size");
    read_virtual_stages();
    read_cut();
    const std::int64_t of_model = out_.tensor.ranks * out_.pipeline.ranks;
    const std::int64_t node = keys_.integer("--nproc-per-node", 1, 32'768).value_or(0);
    const std::int64_t nodes = keys_.degree("--nnodes");
    ranks_ = context_.ranks;
    if (context_.infer_ranks) ranks_ = node > 0 ? node * nodes : of_model;
    if (ranks_ % of_model != 0) {
      keys_.fail("--tensor-model-parallel-size",
                 "tensor " + std::to_string(out_.tensor.ranks) + " x pipeline " +
                     std::to_string(out_.pipeline.ranks) + " does not divide " +
                     std::to_string(ranks_) + " ranks; use --ranks " +
                     std::to_string((ranks_ / of_model + 1) * of_model));
    }
    data_ = ranks_ / of_model;
  }

  void read_virtual_stages() {
    PipelineConfig& pipeline = out_.pipeline;
    const char* per_rank = "--num-virtual-stages-per-pipeline-rank";
    const char* layers_of = "--num-layers-per-virtual-pipeline-stage";
    std::int64_t stages = keys_.degree(per_rank);
    if (const auto layers_each = keys_.integer(layers_of)) {
      if (keys_.given(per_rank) != nullptr) keys_.fail(layers_of, std::string("or ") + per_rank);
      const std::int64_t layers = model_layers(layers_of) + counted_as_layers();
      if (layers % (pipeline.ranks * *layers_each) != 0) {
        keys_.fail(layers_of, std::to_string(layers) + " layers over " +
                                  std::to_string(pipeline.ranks) + " ranks are no multiple of it");
      }
      stages = layers / pipeline.ranks / *layers_each;
    }
    if (stages == 1) return;
    pipeline.virtual_stages = stages;
    pipeline.schedule = PipelineKind::interleaved;
  }

  // Equal stages, embedding and loss counted as a layer of the first and the last.
  void read_cut() {
    const std::int64_t first = keys_.flag(kEmbeddingCounts) ? 1 : 0, counted = counted_as_layers();
    if (counted == 0) return;
    PipelineConfig& pipeline = out_.pipeline;
    const char* const asked_by = first > 0 ? kEmbeddingCounts : kLossCounts;
    const std::int64_t units = model_layers(asked_by) + counted,
                       stages = pipeline.ranks * pipeline.virtual_stages;
    if (units % stages != 0) {
      keys_.fail(asked_by, std::to_string(units) + " layers with what is counted as one over " +
                               std::to_string(stages) + " stages are not equal; use as many " +
                               "stages as divide them");
    }
    if (stages == 1) return;
    if (counted == 2) {
      pipeline.split = LayerSplit::units;
      return;
    }
    pipeline.layers_per_stage.assign(stages, units / stages);
    pipeline.layers_per_stage.front() -= first;
    pipeline.layers_per_stage.back() -= 1 - first;
  }

  std::int64_t counted_as_layers() {
    return (keys_.flag(kEmbeddingCounts) ? 1 : 0) + (keys_.flag(kLossCounts) ? 1 : 0);
  }

  std::int64_t model_layers(const char* asked_by) {
    if (context_.model != nullptr) return context_.model->layers;
    const auto layers = keys_.integer("--num-layers");
    if (!layers) keys_.fail(asked_by, "of how many layers? Add --num-layers, or import --model");
    return *layers;
  }

  void read_batch() {
    const auto micro = keys_.integer("--micro-batch-size");
    if (!micro) keys_.fail("--micro-batch-size", "missing; Megatron-LM needs it");
    const std::int64_t once = *micro * data_;
    const std::int64_t global = keys_.integer("--global-batch-size", 1, kMost).value_or(once);
    if (global % once != 0) {
      keys_.fail("--global-batch-size", std::to_string(global) + " is no multiple of micro batch " +
                                            std::to_string(*micro) + " * " + std::to_string(data_) +
                                            " data-parallel ranks; use " +
                                            std::to_string((global / once + 1) * once));
    }
    out_.micro_batch = *micro;
    out_.gradient_accumulation = global / once;
  }

  void read_zero() {
    ZeroConfig& zero = out_.zero;
    if (keys_.flag("--use-distributed-optimizer")) zero.stage = 1;
    const bool of_megatron = keys_.flag("--use-megatron-fsdp") || keys_.flag("--use-custom-fsdp");
    const auto sharding = keys_.one_of("--data-parallel-sharding-strategy",
                                       "no_shard|optim|optim_grads|optim_grads_params");
    if (of_megatron) {
      const std::string what = sharding.value_or("no_shard");
      zero.stage = what == "optim_grads_params" ? 3
                   : what == "optim_grads"      ? 2
                   : what == "optim"            ? 1
                                                : 0;
    }
    if (keys_.flag("--use-torch-fsdp2")) {
      zero.stage = keys_.flag("--torch-fsdp2-no-reshard-after-forward") ? 2 : 3;
    }
    if (zero.stage == 3) zero.param_persistence_threshold = zero.max_reuse_distance = 0;
    zero.replicas = keys_.degree("--num-distributed-optimizer-instances");
    read_overlap();
  }

  void read_tensor_overlap() {
    if (!keys_.flag("--tp-comm-overlap") || out_.tensor.ranks == 1) return;
    if (!out_.tensor.sequence_parallel) {
      keys_.fail("--tp-comm-overlap",
                 "Megatron-LM overlaps only with --sequence-parallel; add it, or remove this");
    }
    out_.tensor.overlap = true;
  }

  void read_overlap() {
    ZeroConfig& zero = out_.zero;
    zero.overlap_comm = keys_.flag("--overlap-grad-reduce");
    const bool gathers = keys_.flag("--overlap-param-gather");
    if (zero.stage >= 1 && gathers != zero.overlap_comm) {
      keys_.note("--overlap-grad-reduce", "here the gathers of weights overlap where it does");
    }
    const std::int64_t bucket = std::max(kBucket, kBucketOfRank * data_);
    zero.reduce_bucket_size = keys_.integer("--ddp-bucket-size", 1, kMost).value_or(bucket);
  }

  void read_recompute() {
    RecomputeConfig& recompute = out_.recompute;
    const auto granularity = keys_.one_of("--recompute-granularity", "full|selective");
    const auto method = keys_.one_of("--recompute-method", "uniform|block");
    const std::int64_t layers = keys_.integer("--recompute-num-layers").value_or(1);
    if (keys_.flag("--recompute-activations") || granularity == "selective") {
      recompute = {.mode = RecomputeMode::selective, .attention = true};
      read_modules();
    } else if (granularity == "full" && method == "block") {
      recompute = {.mode = RecomputeMode::first_blocks, .blocks = layers};
    } else if (granularity == "full") {
      recompute.mode = layers == 1 ? RecomputeMode::full : RecomputeMode::every_k;
      recompute.every = layers;
    }
  }

  void read_modules() {
    const ForeignKey* modules = keys_.given("--recompute-modules");
    if (modules == nullptr || modules->value == Json("core_attn")) return;
    keys_.refuse("--recompute-modules",
                 "of a layer's parts the attention core alone; write "
                 "core_attn, or x-zerolab.recompute in a strategy");
  }

  void read_precision() {
    PrecisionConfig& precision = out_.precision;
    const bool bf16 = keys_.flag("--bf16"), fp16 = keys_.flag("--fp16");
    if (bf16 && fp16) keys_.fail("--fp16", "contradicts --bf16; remove one of them");
    const bool in_bf16 = keys_.flag("--grad-reduce-in-bf16");
    const bool in_fp32 = keys_.flag("--accumulate-allreduce-grads-in-fp32");
    if (bf16) precision.compute_dtype = DType::bf16;
    if (bf16 && in_bf16) precision.grad_accum_dtype = DType::bf16;
    if (fp16) precision.compute_dtype = DType::f16;
    if (fp16 && !in_fp32) precision.grad_accum_dtype = DType::f16;
    precision.communication_dtype = precision.grad_accum_dtype;
    if (fp16) read_scaler();
  }

  void read_scaler() {
    LossScalerConfig& scaler = out_.loss_scaler;
    scaler.static_scale = keys_.number("--loss-scale").value_or(0);
    const char* initial = "--initial-loss-scale";
    const double power = std::log2(keys_.number(initial).value_or(4294967296.0));
    if (power != std::floor(power) || power < 0) keys_.fail(initial, "is no power of two");
    scaler.initial_scale_power = static_cast<std::int64_t>(power);
    scaler.min_scale = keys_.number("--min-loss-scale").value_or(1);
    scaler.window = keys_.integer("--loss-scale-window").value_or(1000);
    scaler.hysteresis = keys_.integer("--hysteresis").value_or(2);
  }

  void read_optimizer() {
    OptimizerConfig& optimizer = out_.optimizer;
    const auto kind = keys_.text("--optimizer").value_or("adam");
    if (kind == "sgd") {
      optimizer.kind = OptimizerKind::sgd;
      optimizer.momentum = keys_.number("--sgd-momentum").value_or(0.9);
    } else if (kind == "adam") {
      keys_.note("--optimizer", "with decoupled weight decay, as Megatron-LM has it: AdamW");
    } else {
      keys_.refuse("--optimizer", "adam and sgd are");
    }
    optimizer.lr = keys_.number("--lr").value_or(optimizer.lr);
    optimizer.beta1 = keys_.number("--adam-beta1").value_or(0.9);
    optimizer.beta2 = keys_.number("--adam-beta2").value_or(0.999);
    optimizer.epsilon = keys_.number("--adam-eps").value_or(1e-8);
    optimizer.weight_decay = keys_.number("--weight-decay").value_or(0.01);
    out_.gradient_clipping = keys_.number("--clip-grad").value_or(1);
    read_rates();
    read_offload();
  }

  // Steps that are stated in samples or not at all leave the rate constant.
  void read_rates() {
    const std::string style = keys_.text("--lr-decay-style").value_or("linear");
    const auto run = keys_.integer("--train-iters", 0);
    const std::int64_t steps = keys_.integer("--lr-decay-iters", 0).value_or(run.value_or(0));
    const double share = keys_.number("--lr-warmup-fraction").value_or(0);
    LearningRates rates{.first = keys_.number("--lr-warmup-init").value_or(0),
                        .most = out_.optimizer.lr,
                        .last = keys_.number("--min-lr").value_or(0),
                        .steps = steps};
    rates.warmup = keys_.integer("--lr-warmup-iters", 0)
                       .value_or(std::llround(share * static_cast<double>(steps)));
    if (style == "linear") rates.way = LearningRates::Way::line;
    if (style == "cosine") rates.way = LearningRates::Way::cosine;
    const bool is_known = style == "constant" || style == "linear" || style == "cosine";
    const auto schedule = is_known ? schedule_of(rates) : std::nullopt;
    if (schedule) {
      out_.schedule = *schedule;
      return;
    }
    keys_.warn("--lr-decay-style: " + style +
               (is_known
                    ? " without --lr-decay-iters or --train-iters, or to a --min-lr that is not "
                      "--lr-warmup-init"
                    : "") +
               ": the learning rate stays constant here; add a scheduler to the strategy to train "
               "with one");
  }

  void read_offload() {
    if (!keys_.flag("--optimizer-cpu-offload")) return;
    keys_.flag("--use-precision-aware-optimizer");
    out_.offload.optimizer = Tier::cpu;
    out_.offload.ratio = keys_.number("--optimizer-offload-fraction").value_or(1);
  }

  ForeignKeys& keys_;
  const ImportContext& context_;
  Strategy out_;
  std::int64_t ranks_ = 1, data_ = 1;
};

}  // namespace

ImportedStrategy import_megatron(std::string_view text, std::string_view source,
                                 const ImportContext& context) {
  ForeignKeys keys(megatron_arguments(text, source), megatron_groups(), std::string(source),
                   "Megatron-LM");
  MegatronReader reader(keys, context);
  Strategy strategy = reader.read();
  strategy.name = context.name.empty() ? name_of_source(source) : context.name;
  ImportContext checked = context;
  checked.ranks = reader.ranks();
  checked.infer_ranks = false;
  return keys.finish(strategy, read_own_comment(text, source), checked, kMegatronNames);
}

}  // namespace zl
