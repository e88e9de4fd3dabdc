// What the tests of results/ share: a run with every field set, raw file bytes.
// Threads: one test.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "results/store.h"
#include "tests/temp_folder.h"

namespace zl::test {

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline ScenarioRecord a_scenario() {
  return {.hash = "5ce0a210", .name = "demo", .json = R"({"schema":1,"model":{"name":"gpt2-tiny"},
    "cluster":"8xh100","strategies":[{"train_micro_batch_size_per_gpu":3,
    "gradient_accumulation_steps":5}],"run":{"ranks":4,"sequence_length":7,"data":"bible",
    "eval_data":"held-out.txt",
    "software":"torch-fsdp2"}})"};
}

inline Environment an_environment() {
  return {.host = "box",
          .os = "Debian 12",
          .kernel = "Linux 6.1",
          .cpu = "Xeon",
          .cores = 2,
          .memory_bytes = 8'000'000'000,
          .gpu = "H200",
          .driver = "570",
          .compiler = "GNU 12.2",
          .build = "Release",
          .commit = "abc123"};
}

// Every field differs from its default (which store_test.cpp checks) and from every other one.
inline RunResult a_full_run() {
  RunResult run;
  run.strategy = "zero-2";
  run.backend = "sim";
  run.predicted = true;
  run.precision = "bf16";
  run.outcome = Outcome::out_of_memory;
  run.message = "out of memory: 'quoted' \"text\" ✓";
  run.ranks = 4;
  run.steps = 20;
  run.first_step = 12;
  run.run_id = 77;  // save() gives another
  run.loss = {5.5, 4.25, 2.0, 0.1 + 0.2};
  run.grad_norm = {1e-300, std::numeric_limits<double>::infinity()};
  run.learning_rate = {1e-4, 2e-4, 3e-4};
  run.step_seconds = {0.123456789012345678, 1.0 / 3};
  run.loss_scale = {65536, 32768};
  run.skipped_steps = 3;
  run.evaluations = {{0, 5.75, 943}, {16, 3.5, 942}};
  run.best_before = EvaluationPoint{8, 4.25, 941};
  run.tokens_per_second = 12345.678;
  run.step_time = {.median = 0.25, .min = 0.125, .max = 0.5};
  run.step_time_low = 0.2;
  run.step_time_high = 0.3;
  run.own_step_error = 0.09;
  run.priced_from = "data sheet";
  run.model_flops_per_step = 1.5e18;
  run.mfu = 0.43;
  run.mfu_convention = "6N";
  for (std::size_t i = 0; i < kMemoryTags; ++i) {
    const auto n = static_cast<std::int64_t>(i);
    run.peak_device.tag[i] = 1'000'000'000'000 + n;
    run.peak_host.tag[i] = 2000 + n;
    run.peak_nvme.tag[i] = 3000 + n;
  }
  run.reserved_device = 9'000'000'000'001;
  run.reserved_host = 8'000'000'000'003;
  run.device_capacity = 7'000'000'000'004;
  run.need = {.in_use = 81, .reserved = 82, .host = 83, .nvme = 84};
  run.software_held = {.in_use = 85, .device = 87, .low = 86, .high = 88, .when = "backward"};
  run.communication = {{"reduce_scatter", "data", "shard", "threads", 40, 123456},
                       {"all_reduce", "control", "world", "nvlink", 20, 80}};
  run.wire_bytes_per_step = 987654321;
  run.time = {.compute = 0.01,
              .exposed_communication = 0.02,
              .offload_stall = 0.03,
              .bubble = 0.04,
              .optimizer = 0.05,
              .exposed_tensor = 0.006,
              .exposed_pipeline = 0.007};
  run.rank = 6;
  run.stages = {{.rank = 3,
                 .ranks = 2,
                 .peak_device = {{11, 12, 13, 14, 15, 16, 17, 19}},
                 .reserved_device = 18,
                 .step_seconds = 0.21,
                 .time = {0.11, 0.12, 0.13, 0.14, 0.15, 0.16, 0.17}},
                {.rank = 5,
                 .ranks = 1,
                 .peak_device = {{21, 22, 23, 24, 25, 26, 27, 29}},
                 .reserved_device = 28,
                 .step_seconds = 0.22,
                 .time = {0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.37}}};
  run.labels = {.data = "verses.jsonl",
                .rows = 3057,
                .loss = 0.22,
                .accuracy = 0.94,
                .accuracy_low = 0.931,
                .accuracy_high = 0.949,
                .macro_f1 = 0.91,
                .majority_accuracy = 0.77,
                .majority_macro_f1 = 0.43,
                .words_accuracy = 0.92,
                .words_macro_f1 = 0.89,
                .by_label = {{"no", 5, 4, 3}, {"yes", 7, 8, 6}}};
  run.op_count = 4711;
  run.op_sequence_hash = 0xfedcba9876543210u;
  run.warnings = {"first", "second, with ünicode"};
  run.setup = {.model = "gpt2-tiny",  // as a_scenario() has it
               .cluster = "8xh100",
               .software = "torch-fsdp2",
               .data = "bible",
               .eval_data = "held-out.txt",
               .sequence_length = 7,
               .micro_batch = 3,
               .gradient_accumulation = 5,
               .tokens_per_step = 420};
  return run;
}

inline RunResult a_run(const std::string& strategy, const std::string& backend, double step_seconds,
                       std::int64_t device_bytes) {
  RunResult run;
  run.strategy = strategy;
  run.backend = backend;
  run.predicted = backend == "sim";
  run.ranks = 4;
  run.step_time.median = step_seconds;
  run.peak_device.tag[0] = device_bytes;
  return run;
}

}  // namespace zl::test
