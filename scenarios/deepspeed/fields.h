// The plain keys of each section: one list serves reading a DeepSpeed file and writing the
// canonical one. Call visit(name, member) in the order of both.
// Ownership: none. Threads: pure functions.
#pragma once

#include <string>

namespace zl::fields {

// Before the names of its keys.
inline const std::string kZero = "zero_optimization.";

template <class Zero, class Visitor>
void visit_stage3(Zero& zero, Visitor&& visit) {
  visit("prefetch_bucket_size", zero.prefetch_bucket_size);
  visit("param_persistence_threshold", zero.param_persistence_threshold);
  visit("model_persistence_threshold", zero.model_persistence_threshold);
  visit("max_live_parameters", zero.max_live_parameters);
  visit("max_reuse_distance", zero.max_reuse_distance);
}

// Of the top level.
template <class Zero, class Visitor>
void visit_scaling_of_gradients(Zero& zero, Visitor&& visit) {
  visit("prescale_gradients", zero.prescale_gradients);
  visit("gradient_predivide_factor", zero.gradient_predivide_factor);
}

// Of fp16.
template <class Scaler, class Visitor>
void visit_loss_scaler(Scaler& scaler, Visitor&& visit) {
  visit("loss_scale", scaler.static_scale);
  visit("initial_scale_power", scaler.initial_scale_power);
  visit("loss_scale_window", scaler.window);
  visit("hysteresis", scaler.hysteresis);
  visit("consecutive_hysteresis", scaler.consecutive_hysteresis);
  visit("min_loss_scale", scaler.min_scale);
}

// Of optimizer.params.
template <class Optimizer, class Visitor>
void visit_every_optimizer(Optimizer& optimizer, Visitor&& visit) {
  visit("lr", optimizer.lr);
  visit("weight_decay", optimizer.weight_decay);
}
template <class Optimizer, class Visitor>
void visit_sgd(Optimizer& optimizer, Visitor&& visit) {
  visit("momentum", optimizer.momentum);
  visit("nesterov", optimizer.nesterov);
}
template <class Optimizer, class Visitor>
void visit_adam(Optimizer& optimizer, Visitor&& visit) {  // after betas
  visit("eps", optimizer.epsilon);
  visit("bias_correction", optimizer.bias_correction);
}
template <class Optimizer, class Visitor>
void visit_lamb(Optimizer& optimizer, Visitor&& visit) {
  visit("max_coeff", optimizer.lamb_max_trust);
  visit("min_coeff", optimizer.lamb_min_trust);
}
template <class Onebit, class Visitor>
void visit_zero_one_adam(Onebit& onebit, Visitor&& visit) {
  visit("var_freeze_step", onebit.var_freeze_step);
  visit("var_update_scaler", onebit.var_update_scaler);
  visit("local_step_scaler", onebit.local_step_scaler);
  visit("local_step_clipper", onebit.local_step_clipper);
}
template <class Onebit, class Visitor>
void visit_onebit_lamb(Onebit& onebit, Visitor&& visit) {
  visit("coeff_beta", onebit.coeff_beta);
  visit("factor_max", onebit.factor_max);
  visit("factor_min", onebit.factor_min);
  visit("factor_threshold", onebit.factor_threshold);
}

// Of x-zerolab, for 1-bit Adam.
template <class Onebit, class Visitor>
void visit_automatic_freeze(Onebit& onebit, Visitor&& visit) {
  visit("automatic_freeze", onebit.automatic_freeze);
  visit("variance_stability", onebit.variance_stability);
}

// Of scheduler.params.
template <class Schedule, class Visitor>
void visit_warmup_ratios(Schedule& schedule, Visitor&& visit) {
  visit("warmup_min_ratio", schedule.warmup_min_ratio);
  visit("cos_min_ratio", schedule.cos_min_ratio);
}
template <class Schedule, class Visitor>
void visit_one_cycle(Schedule& schedule, Visitor&& visit) {
  visit("cycle_min_lr", schedule.cycle_min_lr);
  visit("cycle_max_lr", schedule.cycle_max_lr);
  visit("decay_lr_rate", schedule.decay_lr_rate);
  visit("cycle_first_step_size", schedule.cycle_first_step_size);
  visit("cycle_second_step_size", schedule.cycle_second_step_size);
  visit("decay_step_size", schedule.decay_step_size);
  visit("cycle_momentum", schedule.cycle_momentum);
  visit("cycle_min_mom", schedule.cycle_min_mom);
  visit("cycle_max_mom", schedule.cycle_max_mom);
  visit("decay_mom_rate", schedule.decay_mom_rate);
}
template <class Schedule, class Visitor>
void visit_range_test(Schedule& schedule, Visitor&& visit) {
  visit("lr_range_test_min_lr", schedule.lr_range_test_min_lr);
  visit("lr_range_test_step_size", schedule.lr_range_test_step_size);
  visit("lr_range_test_step_rate", schedule.lr_range_test_step_rate);
  visit("lr_range_test_staircase", schedule.lr_range_test_staircase);
}

// Of zero_optimization.offload_optimizer and .offload_param, for files.
template <class Offload, class Visitor>
void visit_pipelines(Offload& offload, Visitor&& visit) {
  visit("pipeline_read", offload.pipeline_read);
  visit("pipeline_write", offload.pipeline_write);
}
template <class Offload, class Visitor>
void visit_parameter_files(Offload& offload, Visitor&& visit) {
  visit("buffer_count", offload.parameter_buffer_count);
  visit("buffer_size", offload.parameter_buffer_size);
  visit("max_in_cpu", offload.max_in_cpu);
}

template <class Aio, class Visitor>
void visit_aio(Aio& aio, Visitor&& visit) {
  visit("block_size", aio.block_size);
  visit("queue_depth", aio.queue_depth);
  visit("intra_op_parallelism", aio.threads);
  visit("single_submit", aio.single_submit);
  visit("overlap_events", aio.overlap_events);
}

// Of sparse_attention, but for mode and attention; each mode takes some of them.
template <class Sparse, class Visitor>
void visit_sparse_attention(Sparse& sparse, Visitor&& visit) {
  visit("block", sparse.block);
  visit("different_layout_per_head", sparse.different_layout_per_head);
  visit("num_local_blocks", sparse.num_local_blocks);
  visit("num_global_blocks", sparse.num_global_blocks);
  visit("num_random_blocks", sparse.num_random_blocks);
  visit("num_sliding_window_blocks", sparse.num_sliding_window_blocks);
  visit("num_different_global_patterns", sparse.num_different_global_patterns);
  visit("horizontal_global_attention", sparse.horizontal_global_attention);
  visit("local_window_blocks", sparse.local_window_blocks);
  visit("global_block_indices", sparse.global_block_indices);
  visit("global_block_end_indices", sparse.global_block_end_indices);
}

}  // namespace zl::fields
