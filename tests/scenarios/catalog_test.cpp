#include "scenarios/files/catalog.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/load_scenario.h"
#include "scenarios/files/model_file.h"
#include "scenarios/files/strategy_file.h"
#include "tests/scenarios/message.h"

namespace zl {
namespace {

// Published counts (model cards); the Megatron ones and GPT-3 by 12Lh^2 + 13Lh + (V+T+2)h.
const std::map<std::string, std::int64_t> kParameters = {
    {"gpt2-124m", 124'439'808},         {"gpt2-355m", 354'823'168},
    {"gpt2-774m", 774'030'080},         {"gpt2-1.5b", 1'557'611'200},
    {"gpt3-175b", 174'604'259'328},     {"megatron-22b", 22'074'273'792},
    {"megatron-175b", 174'615'846'912}, {"megatron-530b", 529'600'819'200},
    {"megatron-1t", 1'008'038'758'400}, {"llama2-7b", 6'738'415'616},
    {"llama2-13b", 13'015'864'320},     {"llama2-70b", 68'976'648'192},
    {"llama3-8b", 8'030'261'248},       {"llama3-70b", 70'553'706'496},
    {"llama3.1-405b", 405'853'388'800}, {"llama3-405b", 405'853'388'800},
    {"tinyllama-1.1b", 1'100'048'384},  {"mistral-7b", 7'241'732'096},
    {"qwen2.5-0.5b", 494'032'768},      {"qwen2.5-1.5b", 1'543'714'304},
    {"qwen2.5-3b", 3'085'938'688},      {"qwen2.5-7b", 7'615'616'512},
    {"qwen2.5-14b", 14'770'033'664},    {"qwen2.5-32b", 32'763'876'352},
    {"qwen2.5-72b", 72'706'203'648},    {"gpt2-3m", 3'290'624},
    {"bert-large", 335'180'608},        {"qwen3-0.6b", 596'049'920},
    {"bert-base", 109'514'298},         {"minilm-l6", 22'713'986},
    {"qwen3-8b", 8'190'735'360},        {"gemma-2b", 2'506'172'416},
    {"phi-3-mini", 3'821'079'552},      {"smollm2-135m", 134'515'008},
    {"smollm2-360m", 361'821'120},
};

TEST(Catalog, ParameterCountsAreExact) {
  for (const auto& [name, parameters] : kParameters) {
    EXPECT_EQ(load_model(name).parameters(), parameters) << name;
  }
}

TEST(Catalog, TinyModelsAreTiny) {
  for (const char* name : {"gpt2-tiny", "llama-tiny"}) {
    const ModelConfig model = load_model(name);
    EXPECT_LT(model.parameters(), 500'000) << name;
    EXPECT_EQ(model.vocab, 256) << name;
  }
  EXPECT_LT(load_model("llama-tiny").kv_heads, load_model("llama-tiny").heads);
}

TEST(Catalog, EveryModelSaysItsFileName) {
  for (const std::string& name : catalog_names("models")) {
    EXPECT_EQ(load_model(name).name, name);
    EXPECT_TRUE(kParameters.contains(name) || name.ends_with("-tiny")) << name;
  }
}

TEST(Catalog, ModelsSurviveTheirCanonicalForm) {
  for (const std::string& name : catalog_names("models")) {
    const ModelConfig model = load_model(name);
    const ModelConfig again = model_from_json(model_to_json(model), "again");
    EXPECT_EQ(model_to_json(again), model_to_json(model)) << name;
    EXPECT_EQ(again, model) << name;
  }
}

TEST(Catalog, LongModelsHaveTheirTrueLengths) {
  const ModelConfig llama = load_model("llama3.1-405b"), mistral = load_model("mistral-7b");
  EXPECT_EQ(llama.max_sequence, 131072);
  EXPECT_EQ(llama.rope_scaling.factor, 8);
  EXPECT_EQ(llama.rope_scaling.original, 8192);
  EXPECT_EQ(mistral.max_sequence, 32768);
  EXPECT_EQ(mistral.sliding_window, 4096);
}

TEST(Catalog, EveryStudyLoads) {
  const std::vector<std::string> studies = catalog_names("studies");
  EXPECT_GE(studies.size(), 3u);
  for (const std::string& name : studies) {
    const Scenario scenario = load_scenario(name);
    EXPECT_GE(scenario.strategies.size(), 2u) << name;
    EXPECT_GT(scenario.run.sequence_length, 0) << name;
  }
}

TEST(Catalog, PipelinesAreWhatTheirNamesSay) {
  using enum PipelineKind;
  const std::map<std::string, PipelineKind> kinds{
      {"pp4-1f1b", one_f_one_b}, {"pp4-gpipe", gpipe}, {"pp4-zb-h1", zb_h1}, {"pp4-zb-v", zb_v}};
  const ModelConfig model = load_model("gpt2-124m");
  for (const auto& [name, kind] : kinds) {
    const Strategy s = load_strategy(name, {.ranks = 8, .model = &model}).strategy;
    EXPECT_EQ(s.name, name);
    EXPECT_EQ(s.zero.stage, 1);
    EXPECT_EQ(s.pipeline,
              (PipelineConfig{.ranks = 4, .virtual_stages = is_v(kind) ? 2 : 1, .schedule = kind}));
  }
}

TEST(Catalog, StrategiesAreWhatTheirNamesSay) {
  const ModelConfig model = load_model("gpt2-124m");
  const ImportContext context{4, &model};
  for (int stage = 0; stage < 4; ++stage) {
    const std::string name = "zero-" + std::to_string(stage);
    const ImportedStrategy imported = load_strategy(name, context);
    const Strategy& s = imported.strategy;
    EXPECT_EQ(s.name, name);
    EXPECT_EQ(s.zero.stage, stage);
    EXPECT_TRUE(s.zero.overlap_comm);
    EXPECT_EQ(s.zero.reduce_bucket_size, 768 * 768);
    EXPECT_EQ(s.optimizer.kind, OptimizerKind::adamw);
    EXPECT_EQ(s.optimizer.beta2, 0.95);
    EXPECT_EQ(s.optimizer.weight_decay, 0.1);
    EXPECT_EQ(s.gradient_clipping, 1.0);
    EXPECT_EQ(s.recompute.mode, RecomputeMode::none);
    EXPECT_TRUE(imported.warnings.empty() && imported.refusals.empty()) << name;
  }
  const Strategy s = load_strategy("zero-3-recompute", context).strategy;
  EXPECT_EQ(s.zero.prefetch_bucket_size, 9 * 768 * 768 / 10);
  EXPECT_EQ(s.zero.param_persistence_threshold, 0);
  EXPECT_EQ(s.zero.max_reuse_distance, 0);
  EXPECT_EQ(s.recompute.mode, RecomputeMode::full);
  EXPECT_EQ(load_strategy("ddp", context).strategy.name, "zero-0");
}

TEST(Catalog, OffloadStrategiesSayWhere) {
  const ImportContext context = {};
  const OffloadConfig two = load_strategy("zero-2-offload-cpu", context).strategy.offload;
  EXPECT_EQ(two.optimizer, Tier::cpu);
  EXPECT_EQ(two.parameters, Tier::device);
  const OffloadConfig three = load_strategy("zero-3-offload-cpu", context).strategy.offload;
  EXPECT_EQ(three.optimizer, Tier::cpu);
  EXPECT_EQ(three.parameters, Tier::cpu);
  const OffloadConfig files = load_strategy("zero-3-offload-nvme", context).strategy.offload;
  EXPECT_EQ(files.optimizer, Tier::nvme);
  EXPECT_EQ(files.parameters, Tier::nvme);
  EXPECT_TRUE(files.pipeline_read && files.pipeline_write);
  EXPECT_EQ(files.max_in_cpu, 0);
}

// Dense, as the data sheets have them: TFLOP/s of bf16, GB/s of memory, GiB.
TEST(Catalog, GpusHaveThePeaksOfTheirDataSheets) {
  struct Sheet {
    const char* gpu;
    double bf16, bandwidth, memory;
  };
  for (const Sheet& sheet : {Sheet{"l40s", 362, 864, 48}, Sheet{"a10g", 70, 600, 24},
                             Sheet{"rtx-4090", 165.2, 1008, 24}, Sheet{"h100-pcie", 756, 2000, 80},
                             Sheet{"h100-nvl", 835, 3900, 94}, Sheet{"gb200", 2500, 8000, 173.23},
                             Sheet{"mi300x", 1307.4, 5300, 192}, Sheet{"h100", 989, 3350, 80}}) {
    const sim::ClusterSpec cluster = load_cluster(std::string("8x") + sheet.gpu);
    EXPECT_DOUBLE_EQ(cluster.device.rate(DType::bf16).peak, sheet.bf16 * 1e12) << sheet.gpu;
    EXPECT_DOUBLE_EQ(cluster.device.memory_bandwidth, sheet.bandwidth * 1e9) << sheet.gpu;
    EXPECT_NEAR(static_cast<double>(cluster.device.memory) / 0x1p30, sheet.memory, 0.01);
    EXPECT_EQ(sim::default_precision(cluster), DType::bf16) << sheet.gpu;
  }
  EXPECT_EQ(canonical_cluster("8xRTX 4090"), "8xrtx-4090");
}

TEST(Catalog, UnknownNamesGetTheNearest) {
  EXPECT_NE(message_of([] { load_model("gtp2-124m"); }).find("nearest name is \"gpt2-124m\""),
            std::string::npos);
  EXPECT_NE(message_of([] { load_strategy("zeor-3", {}); }).find("nearest name is \"zero-3\""),
            std::string::npos);
}

}  // namespace
}  // namespace zl
