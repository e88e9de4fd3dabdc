// A Strategy survives its JSON whole: a field that the writer forgets would give two strategies one
// content hash.
#include "scenarios/files/strategy_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "tests/scenarios/importing.h"
#include "tests/scenarios/strategy_fields.h"

namespace zl {
namespace {

using test::compare, test::differences;

// Fields that exclude each other are spread over several strategies.
Strategy with_sgd() {
  Strategy s;
  s.name = "mine";
  s.zero = {.stage = 1,
            .overlap_comm = true,
            .reduce_bucket_size = 1000,
            .prescale_gradients = true,
            .gradient_predivide_factor = 2.5,
            .sum_gradients = true};
  s.precision = {.compute_dtype = DType::f16,
                 .grad_accum_dtype = DType::bf16,
                 .communication_dtype = DType::f16};
  s.pipeline = {.ranks = 2,
                .virtual_stages = 3,
                .schedule = PipelineKind::breadth_first,
                .layers_per_stage = {1, 2, 1, 1, 1, 2}};
  s.recompute = {.mode = RecomputeMode::first_blocks, .stage_blocks = {1, 2, 0, 1, 0, 0}};
  s.tensor = {.ranks = 2, .sequence_parallel = true, .overlap = true};
  s.sparse_attention = {.mode = SparseMode::fixed,
                        .block = 32,
                        .different_layout_per_head = true,
                        .num_local_blocks = 8,
                        .num_global_blocks = 2,
                        .horizontal_global_attention = true,
                        .num_different_global_patterns = 3};
  s.micro_batch = 3;
  s.gradient_accumulation = 2;
  s.optimizer.kind = OptimizerKind::sgd;
  s.optimizer.lr = 0.1;
  s.optimizer.weight_decay = 0.01;
  s.optimizer.momentum = 0.9;
  s.optimizer.nesterov = true;
  s.schedule.kind = ScheduleKind::warmup_decay_lr;
  s.schedule.warmup_min_lr = 1e-5;
  s.schedule.warmup_max_lr = 2e-2;
  s.schedule.warmup_num_steps = 7;
  s.schedule.warmup_log = false;
  s.schedule.total_num_steps = 99;
  s.gradient_clipping = 0.5;
  s.loss_scaler = {.static_scale = 64,
                   .initial_scale_power = 10,
                   .window = 50,
                   .hysteresis = 3,
                   .consecutive_hysteresis = true,
                   .min_scale = 4};
  s.deepspeed_scale_order = true;
  return s;
}

Strategy with_stage3() {
  Strategy s;
  s.zero = {.stage = 3,
            .prefetch_bucket_size = 11,
            .param_persistence_threshold = 12,
            .model_persistence_threshold = 13,
            .max_live_parameters = 14,
            .max_reuse_distance = 15,
            .secondary_partition = 2,
            .quantized_weights = true,
            .quantized_gradients = true};
  s.precision.compute_dtype = DType::bf16;
  s.precision.stochastic_rounding = true;
  s.recompute.mode = RecomputeMode::every_k;
  s.recompute.every = 3;
  s.optimizer.beta1 = 0.8;
  s.optimizer.beta2 = 0.95;
  s.optimizer.epsilon = 1e-6;
  s.optimizer.bias_correction = false;
  s.schedule.kind = ScheduleKind::warmup_cosine_lr;
  s.schedule.total_num_steps = 50;
  s.schedule.warmup_min_ratio = 0.1;
  s.schedule.cos_min_ratio = 0.2;
  s.pipeline = {.ranks = 2, .split = LayerSplit::cost};
  s.sparse_attention = {.mode = SparseMode::variable,
                        .bidirectional = false,
                        .num_random_blocks = 2,
                        .local_window_blocks = {2, 4},
                        .global_block_indices = {1, 3},
                        .global_block_end_indices = {2, 5},
                        .seed = 5};
  s.separate_tied_gradient = true;
  return s;
}

Strategy with_files() {
  Strategy s;
  s.zero.stage = 3;
  s.recompute.mode = RecomputeMode::full;
  s.offload = {.optimizer = Tier::nvme,
               .parameters = Tier::nvme,
               .activations = true,
               .pin_memory = false,
               .nvme_path = "/somewhere",
               .aio = {.block_size = 8192,
                       .queue_depth = 3,
                       .threads = 2,
                       .single_submit = true,
                       .overlap_events = false},
               .sub_group_size = 1000,
               .optimizer_buffer_count = 6,
               .pipeline_read = true,
               .pipeline_write = true,
               .parameter_buffer_count = 7,
               .parameter_buffer_size = 2000,
               .max_in_cpu = 3000};
  s.optimizer.kind = OptimizerKind::adam;
  ScheduleConfig& cycle = s.schedule;
  cycle.kind = ScheduleKind::one_cycle;
  cycle.cycle_min_lr = 0.01;
  cycle.cycle_max_lr = 0.02;
  cycle.decay_lr_rate = 0.1;
  cycle.cycle_first_step_size = 5;
  cycle.cycle_second_step_size = 6;
  cycle.cycle_first_stair_count = 2;
  cycle.cycle_second_stair_count = 3;
  cycle.decay_step_size = 7;
  cycle.cycle_momentum = false;
  cycle.cycle_min_mom = 0.7;
  cycle.cycle_max_mom = 0.95;
  cycle.decay_mom_rate = 0.3;
  return s;
}

Strategy with_host_step() {
  Strategy s;
  s.zero.stage = 2;
  s.zero.replicas = 2;
  s.offload.optimizer = Tier::cpu;
  s.offload.ratio = 0.5;
  s.recompute = {.mode = RecomputeMode::selective, .attention = true, .activation = true};
  s.schedule.kind = ScheduleKind::lr_range_test;
  s.schedule.lr_range_test_min_lr = 0.01;
  s.schedule.lr_range_test_step_size = 8;
  s.schedule.lr_range_test_step_rate = 2;
  s.schedule.lr_range_test_staircase = true;
  return s;
}

Strategy with_delayed_update() {
  Strategy s;
  s.zero.stage = 2;
  s.offload.optimizer = Tier::cpu;
  s.offload.delayed_update_after = 4;
  s.recompute = {.mode = RecomputeMode::selective, .products = true};
  s.schedule.kind = ScheduleKind::exponential;
  s.schedule.gamma = 1.5;
  s.sparse_attention = {.mode = SparseMode::bslongformer, .num_sliding_window_blocks = 5};
  return s;
}

Strategy with_lamb() {
  Strategy s;
  s.optimizer.kind = OptimizerKind::lamb;
  s.optimizer.lamb_min_trust = 0.02;
  s.optimizer.lamb_max_trust = 5;
  s.sparse_attention = {.mode = SparseMode::layout, .rows = {"#.", "##"}};
  return s;
}

Strategy with_onebit_adam() {
  Strategy s;
  s.optimizer.kind = OptimizerKind::onebit_adam;
  s.optimizer.bias_correction = false;
  s.optimizer.onebit = {.freeze_step = 5,
                        .automatic_freeze = true,
                        .variance_stability = 0.9,
                        .deepspeed_compat = true};
  return s;
}

Strategy with_zero_one_adam() {
  Strategy s;
  s.optimizer.kind = OptimizerKind::zero_one_adam;
  s.optimizer.bias_correction = false;
  s.optimizer.onebit = {.var_freeze_step = 6,
                        .var_update_scaler = 7,
                        .local_step_scaler = 8,
                        .local_step_clipper = 9};
  return s;
}

Strategy with_onebit_lamb() {
  Strategy s;
  s.optimizer.kind = OptimizerKind::onebit_lamb;
  s.optimizer.bias_correction = false;
  s.optimizer.onebit = {
      .coeff_beta = 0.8, .factor_max = 3, .factor_min = 0.25, .factor_threshold = 0.2};
  return s;
}

std::vector<Strategy> strategies() {
  return {with_sgd(),         with_stage3(),         with_files(),
          with_host_step(),   with_delayed_update(), with_lamb(),
          with_onebit_adam(), with_zero_one_adam(),  with_onebit_lamb()};
}

TEST(StrategyJson, GivesTheSameStrategyBack) {
  for (const Strategy& strategy : strategies()) {
    const std::string text = strategy_to_json(strategy).dump();
    const Strategy back = import_text(text).strategy;
    EXPECT_TRUE(back == strategy) << text;
    EXPECT_EQ(differences(back, strategy), std::set<std::string>{});
  }
}

TEST(StrategyJson, EveryFieldIsCovered) {
  std::set<std::string> missing, covered;
  compare(Strategy{}, Strategy{}, "Strategy",
          [&missing](const std::string& path, bool) { missing.insert(path); });
  EXPECT_EQ(missing.size(), 128u);
  for (const Strategy& strategy : strategies()) covered.merge(differences(strategy, Strategy{}));
  for (const std::string& path : covered) missing.erase(path);
  // RecomputeConfig::blocks, which the runner fills in after the strategy is read.
  EXPECT_EQ(missing, (std::set<std::string>{"Strategy.3.5"}));
}

}  // namespace
}  // namespace zl
