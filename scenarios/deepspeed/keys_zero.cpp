#include "scenarios/deepspeed/key_rows.h"

namespace zl {
namespace {

using namespace rows;

constexpr auto kOldOptimizer = "deprecated spelling of offload_optimizer.device \"cpu\"";
constexpr auto kOldParameters = "deprecated spelling of offload_param.device \"cpu\"";

constexpr KeySpec kRows[] = {
    applied("zero_optimization.stage", integer, "0"),
    applied("zero_optimization.overlap_comm", boolean | null, "null", "true only for stage 3"),
    applied("zero_optimization.reduce_bucket_size", integer, "500000000").at_least(1),
    applied("zero_optimization.prefetch_bucket_size", integer, "50000000").at_least(0).or_stage3(),
    applied("zero_optimization.param_persistence_threshold", integer, "100000")
        .at_least(0)
        .or_stage3(),
    applied("zero_optimization.model_persistence_threshold", integer, "9223372036854775807")
        .at_least(0)
        .or_stage3(),
    applied("zero_optimization.max_live_parameters", integer, "1000000000").at_least(0).or_stage3(),
    applied("zero_optimization.max_reuse_distance", integer, "1000000000").at_least(0).or_stage3(),

    fixed("zero_optimization.contiguous_gradients", boolean, "true", quiet,
          "gradients are always copied into a flat bucket"),
    fixed("zero_optimization.reduce_scatter", boolean, "true", warn,
          "gradients are always reduce-scattered"),
    moot("zero_optimization.use_multi_rank_bucket_allreduce", boolean,
         "buckets are reduce-scattered, never all-reduced whole"),
    fixed("zero_optimization.allgather_partitions", boolean, "true", quiet,
          "updated weights are always all-gathered"),
    moot("zero_optimization.allgather_bucket_size", integer,
         "the weights are gathered in one call, as DeepSpeed does on current PyTorch")
        .at_least(0),
    fixed("zero_optimization.round_robin_gradients", boolean, "false", quiet,
          "partitions follow the order of the parameters"),
    fixed("zero_optimization.load_from_fp32_weights", boolean, "true", quiet,
          "masters are restored from fp32"),
    fixed("zero_optimization.elastic_checkpoint", boolean, "false", quiet,
          "a checkpoint is resumed on as many ranks as wrote it"),
    moot("zero_optimization.ignore_unused_parameters", boolean,
         "every parameter of these models gets a gradient"),
    applied("zero_optimization.sub_group_size", integer, "1000000000",
            "what one update off the device covers; 0: a parameter")
        .at_least(0)
        .or_stage3(),
    fixed("zero_optimization.gather_16bit_weights_on_model_save", boolean, "false", quiet,
          "`zerolab train --save` writes whole weights")
        .or_stage3(),
    fixed("zero_optimization.stage3_gather_fp16_weights_on_model_save", boolean, "false", quiet,
          "deprecated; `zerolab train --save` writes whole weights"),
    fixed("zero_optimization.module_granularity_threshold", integer, "0", quiet,
          "parameters are gathered per transformer block")
        .or_stage3(),
    fixed("zero_optimization.use_all_reduce_for_fetch_params", boolean, "false", warn,
          "parameters are always fetched by all-gather")
        .or_stage3(),
    fixed("zero_optimization.allgather_sequential", boolean, "false", quiet,
          "a block's parameters are gathered together")
        .or_stage3(),
    moot("zero_optimization.memory_efficient_linear", boolean,
         "linear layers keep only their input here"),
    moot("zero_optimization.override_module_apply", boolean, "concerns PyTorch modules only"),
    moot("zero_optimization.log_trace_cache_warnings", boolean, "concerns logging only"),
    moot("zero_optimization.save_muon_momentum_buffer_in_memory", boolean,
         "only matters with Muon"),
    moot("zero_optimization.leaf_module.*", any, "parameters are gathered per transformer block"),
    fixed("zero_optimization.pipeline_loading_checkpoint", boolean, "false", quiet,
          "checkpoints are read before the first step"),
    fixed("zero_optimization.enable_sanity_checks", boolean, "false", quiet,
          "collectives are always checked for agreement"),
    applied("zero_optimization.legacy_stage1", boolean, "false"),

    // ZeRO++ and MiCS
    applied("zero_optimization.zero_hpz_partition_size", integer, "1")
        .at_least(1)
        .at_most(kMeshLimit),
    applied("zero_optimization.zero_quantized_weights", boolean, "false"),
    fixed("zero_optimization.zero_quantized_nontrainable_weights", boolean, "false", refuse,
          "quantized gathers (ZeRO++)"),
    applied("zero_optimization.zero_quantized_gradients", boolean, "false"),
    fixed("zero_optimization.zeropp_loco_param.err_beta", number, "null", refuse,
          "quantized reductions (ZeRO++)"),
    fixed("zero_optimization.zeropp_loco_param.reset_T", integer, "null", refuse,
          "quantized reductions (ZeRO++)"),
    applied("zero_optimization.mics_shard_size", integer, "-1").at_least(-1).at_most(kMeshLimit),
    fixed("zero_optimization.mics_hierarchical_params_gather", boolean, "false", quiet,
          "a gather inside a copy is one collective"),

    // Offload
    applied("zero_optimization.offload_param.device", text | null, "\"none\"")
        .one_of("none|cpu|nvme"),
    applied("zero_optimization.offload_param.nvme_path", text | null, "null"),
    applied("zero_optimization.offload_param.buffer_count", integer, "5").at_least(1),
    applied("zero_optimization.offload_param.buffer_size", integer, "100000000").at_least(1),
    applied("zero_optimization.offload_param.max_in_cpu", integer, "1000000000").at_least(0),
    applied("zero_optimization.offload_param.pin_memory", boolean, "true"),
    applied("zero_optimization.offload_optimizer.device", text | null, "\"none\"")
        .one_of("none|cpu|nvme"),
    applied("zero_optimization.offload_optimizer.nvme_path", text | null, "null"),
    applied("zero_optimization.offload_optimizer.buffer_count", integer, "4").at_least(1),
    applied("zero_optimization.offload_optimizer.pin_memory", boolean, "true"),
    applied("zero_optimization.offload_optimizer.pipeline_read", boolean, "false"),
    applied("zero_optimization.offload_optimizer.pipeline_write", boolean, "false"),
    applied("zero_optimization.offload_optimizer.ratio", number, "1.0").at_least(0).at_most(1),
    fixed("zero_optimization.offload_optimizer.fast_init", boolean, "false", quiet,
          "state is always written to its files at the start"),
    fixed("zero_optimization.offload_optimizer.super_offload", boolean, "false", refuse,
          "SuperOffload's placement"),
    moot("zero_optimization.offload_optimizer.cpuadam_cores_perc", number,
         "the host update uses the rank's threads")
        .above(0)
        .at_most(1),
    applied("zero_optimization.cpu_offload", boolean, "false", kOldOptimizer),
    applied("zero_optimization.cpu_offload_params", boolean, "false", kOldParameters),
    applied("zero_optimization.cpu_offload_param", boolean, "false", kOldParameters),
    applied("zero_optimization.cpu_offload_use_pin_memory", boolean, "true",
            "deprecated spelling of pin_memory"),
    fixed("zero_optimization.zenflow.*", any, "null", refuse, "ZenFlow's asynchronous updates"),

    // Wrong here
    rejected("zero_optimization.stage3_param_persitance_threshold",
             "a typing error; write stage3_param_persistence_threshold"),
    rejected("zero_optimization.verbose", "not a DeepSpeed key; remove it"),
    rejected("zero_optimization.scheduler.type", "scheduler belongs at the top level"),
    rejected("zero_optimization.scheduler.params.*", "scheduler belongs at the top level"),
    ignored("allgather_bucket_size", "write zero_optimization.allgather_bucket_size"),
    ignored("allgather_partitions", "write zero_optimization.allgather_partitions"),
    ignored("reduce_bucket_size", "write zero_optimization.reduce_bucket_size"),
    ignored("reduce_scatter", "write zero_optimization.reduce_scatter"),
};

}  // namespace

std::span<const KeySpec> zero_keys() { return kRows; }

}  // namespace zl
