#include "scenarios/files/import_huggingface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/ops/rope_table.h"
#include "scenarios/files/model_file.h"
#include "simulator/json/reading.h"
#include "tests/scenarios/message.h"

namespace zl {
namespace {

Json gpt2() {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"n_layer", 12},
          {"n_embd", 768},
          {"n_head", 12},
          {"n_positions", 1024},
          {"n_ctx", 1024},
          {"vocab_size", 50257},
          {"activation_function", "gelu_new"},
          {"resid_pdrop", 0.1},
          {"embd_pdrop", 0.1},
          {"attn_pdrop", 0.1},
          {"layer_norm_epsilon", 1e-5},
          {"bos_token_id", 50256},
          {"task_specific_params", {{"text-generation", {{"do_sample", true}}}}}};
}

Json llama(const char* architecture, const char* type) {
  return {{"architectures", {architecture}}, {"model_type", type},
          {"num_hidden_layers", 32},         {"hidden_size", 4096},
          {"num_attention_heads", 32},       {"num_key_value_heads", 8},
          {"intermediate_size", 14336},      {"vocab_size", 128256},
          {"max_position_embeddings", 8192}, {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},          {"hidden_act", "silu"},
          {"attention_bias", false},         {"tie_word_embeddings", false},
          {"torch_dtype", "bfloat16"}};
}

ModelConfig import_json(const Json& json) { return import_huggingface(json.dump(), "config.json"); }

std::string refusal(const Json& json) {
  return message_of([&] { import_json(json); });
}

TEST(ImportHuggingFace, Gpt2) {
  const ModelConfig model = import_json(gpt2());
  EXPECT_EQ(model.parameters(), 124'439'808);
  EXPECT_EQ(model.dropout, 0.1);
  EXPECT_EQ(model.activation, ActivationKind::gelu_tanh);
}

TEST(ImportHuggingFace, Llama) {
  const ModelConfig model = import_json(llama("LlamaForCausalLM", "llama"));
  EXPECT_EQ(model.parameters(), 8'030'261'248);
  EXPECT_EQ(model.rope_theta, 500000.0);
  Json old = llama("LlamaForCausalLM", "llama");
  old.erase("num_key_value_heads");
  EXPECT_EQ(import_json(old).kv_heads, 32);
}

// Golden frequencies by transformers, in fp32.
TEST(ImportHuggingFace, Llama31StretchesPositionsAsTransformersDo) {
  const std::string file = std::string(ZL_SOURCE_DIR) + "/tests/golden/rope/llama3.json";
  for (const Json& golden : parse_json(read_file(file), file)) {
    Json json = llama("LlamaForCausalLM", "llama");
    json["head_dim"] = golden["head_size"];
    json["rope_theta"] = golden["rope_theta"];
    json["rope_scaling"] = golden["rope_scaling"];
    json["rope_scaling"]["rope_type"] = "llama3";
    const ModelConfig model = import_json(json);
    EXPECT_EQ(model.rope_scaling.factor, golden["rope_scaling"]["factor"]);
    ASSERT_EQ(golden["frequencies"].size() * 2, static_cast<std::size_t>(model.head_size));
    const RopeTable table =
        rope_table(model.rope_theta, model.rotary_width(), model.rope_scaling, 9);
    EXPECT_EQ(table.multiplier, 1);
    for (std::size_t j = 0; j < table.frequencies.size(); ++j) {
      EXPECT_NEAR(table.frequencies[j] / golden["frequencies"][j].get<double>(), 1, 1e-6);
    }
    const Json own = model_to_json(model);
    EXPECT_EQ(model_from_json(own, "own"), model);
    EXPECT_EQ(own["rope_scaling"]["original_max_position_embeddings"],
              golden["rope_scaling"]["original_max_position_embeddings"].get<double>());
  }
  EXPECT_FALSE(
      model_to_json(import_json(llama("LlamaForCausalLM", "llama"))).contains("rope_scaling"));
}

TEST(ImportHuggingFace, Mistral) {
  Json json = llama("MistralForCausalLM", "mistral");
  json["vocab_size"] = 32000;
  json["sliding_window"] = 4096;
  EXPECT_EQ(import_json(json).parameters(), 7'241'732'096);
  EXPECT_EQ(import_json(json).sliding_window, 4096);
  json["sliding_window"] = nullptr;
  EXPECT_EQ(import_json(json).sliding_window, 0);
  json.erase("sliding_window");  // what transformers take then
  json.erase("num_key_value_heads");
  json.erase("max_position_embeddings");
  const ModelConfig silent = import_json(json);
  EXPECT_EQ(silent.sliding_window, 4096);
  EXPECT_EQ(silent.kv_heads, 8);
  EXPECT_EQ(silent.max_sequence, 131072);
}

TEST(ImportHuggingFace, Qwen2) {
  Json json = llama("Qwen2ForCausalLM", "qwen2");
  json.update({{"num_hidden_layers", 24},
               {"hidden_size", 896},
               {"num_attention_heads", 14},
               {"num_key_value_heads", 2},
               {"intermediate_size", 4864},
               {"vocab_size", 151936},
               {"tie_word_embeddings", true},
               {"use_sliding_window", false},
               {"sliding_window", 32768},
               {"max_window_layers", 24}});
  json.erase("attention_bias");
  const ModelConfig model = import_json(json);
  EXPECT_EQ(model.parameters(), 494'032'768);
  EXPECT_EQ(model.sliding_window, 0);
  json["use_sliding_window"] = true;
  EXPECT_EQ(import_json(json).sliding_window, 0) << "no layer is a later one";
  json["max_window_layers"] = 22;
  EXPECT_EQ(import_json(json).sliding_window, 32768);
  EXPECT_EQ(import_json(json).sliding_layers, (std::vector<std::int64_t>{22, 23}));
  EXPECT_EQ(import_json(json).window_of(21), 0);
  json["layer_types"] = std::vector<std::string>(24, "sliding_attention");  // wins
  EXPECT_EQ(import_json(json).window_of(0), 32768);
  EXPECT_TRUE(import_json(json).sliding_layers.empty());
}

TEST(ImportHuggingFace, Qwen3GemmaAndPhi3) {
  Json json = llama("Qwen3ForCausalLM", "qwen3");
  ModelConfig model = import_json(json);
  EXPECT_TRUE(model.qk_norm);
  EXPECT_EQ(model.head_size, 128);
  EXPECT_FALSE(model.qkv_bias || model.out_bias || model.mlp_bias);
  json["num_attention_heads"] = 16;  // 16 heads of 128 on 4096
  EXPECT_EQ(import_json(json).attention_width(), 2048);
  json = llama("GemmaForCausalLM", "gemma");
  json["hidden_act"] = "gelu";
  json.erase("tie_word_embeddings");
  model = import_json(json);
  EXPECT_TRUE(model.norm_plus_one && model.scaled_embedding && model.tied_embeddings);
  EXPECT_EQ(model.activation, ActivationKind::geglu_tanh);
  EXPECT_EQ(model.head_size, 256);
  json = llama("Phi3ForCausalLM", "phi3");
  json.erase("num_key_value_heads");
  json.erase("rms_norm_eps");
  json["sliding_window"] = 2047;
  json["partial_rotary_factor"] = 0.5;
  json["max_position_embeddings"] = 16384;
  json["original_max_position_embeddings"] = 4096;
  json["rope_scaling"] = {{"type", "su"},
                          {"short_factor", std::vector<double>(32, 1.5)},
                          {"long_factor", std::vector<double>(32, 3)}};
  model = import_json(json);
  EXPECT_EQ(model.kv_heads, 32);
  EXPECT_EQ(model.norm_epsilon, 1e-5);
  EXPECT_EQ(model.sliding_window, 2047);
  EXPECT_EQ(model.rotary_width(), 64);
  EXPECT_EQ(model.rope_scaling.kind, RopeKind::longrope);
  EXPECT_EQ(model.rope_scaling.factor, 4);
  EXPECT_EQ(model.rope_scaling.original, 4096);
  EXPECT_EQ(model_from_json(model_to_json(model), "own"), model);
  json["rope_scaling"]["long_factor"] = {1.0, 2.0};
  EXPECT_CONTAINS(refusal(json), "rope_scaling.long_factor: has 2 numbers; give one for each of");
}

TEST(ImportHuggingFace, OtherArchitecturesAreRefusedByName) {
  for (const auto& [architecture, type] : {std::pair{"BertForQuestionAnswering", "bert"},
                                           {"MixtralForCausalLM", "mixtral"},
                                           {"LlamaForSequenceClassification", "llama"},
                                           {"Gemma2ForCausalLM", "gemma2"}}) {
    const std::string message = refusal(llama(architecture, type));
    EXPECT_CONTAINS(message, architecture);
    EXPECT_CONTAINS(message, "supported are GPT2LMHeadModel");
  }
  EXPECT_CONTAINS(refusal({{"model_type", "t5"}, {"d_model", 512}}), "\"t5\" is not supported");
  EXPECT_CONTAINS(refusal(llama("Gemma2ForCausalLM", "gemma2")),
                  "the nearest is \"GemmaForCausalLM\"");
}

TEST(ImportHuggingFace, EncodersHaveTheHeadOfTheirArchitecture) {
  Json json = {{"model_type", "bert"},    {"vocab_size", 30522},       {"hidden_size", 768},
               {"num_hidden_layers", 12}, {"num_attention_heads", 12}, {"intermediate_size", 3072}};
  const auto as = [&](const char* architecture) {
    json["architectures"] = {architecture};
    return import_json(json);
  };
  const ModelConfig masked = as("BertForMaskedLM");
  EXPECT_EQ(masked.head, HeadKind::masked_token);
  EXPECT_EQ(masked.parameters(), 109'514'298);
  EXPECT_TRUE(masked.encoder);
  EXPECT_EQ(masked.activation, ActivationKind::gelu_erf);
  EXPECT_EQ(masked.norm_epsilon, 1e-12);
  EXPECT_EQ(masked.dropout, 0.1);
  EXPECT_EQ(masked.attention_dropout, 0.1);
  EXPECT_EQ(masked.segments, 2);
  EXPECT_EQ(masked.positions(), 512);
  EXPECT_EQ(model_from_json(model_to_json(masked), "own"), masked);
  EXPECT_EQ(as("BertForSequenceClassification").parameters(), 109'483'778);
  EXPECT_EQ(as("BertModel").labels, 2);
  json["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  json["classifier_dropout"] = 0.3;
  const ModelConfig labels = as("BertForSequenceClassification");
  EXPECT_EQ(labels.labels, 3);
  EXPECT_EQ(labels.label_dropout, 0.3);
  EXPECT_EQ(model_from_json(model_to_json(labels), "own"), labels);
  json["hidden_act"] = "relu";
  EXPECT_CONTAINS(refusal(json), "hidden_act: \"relu\" is not one of gelu_new");
}

TEST(ImportHuggingFace, RobertaCountsPositionsBehindThePadding) {
  const Json json = {{"model_type", "roberta"},   {"architectures", {"RobertaForMaskedLM"}},
                     {"vocab_size", 50265},       {"hidden_size", 768},
                     {"num_hidden_layers", 12},   {"num_attention_heads", 12},
                     {"intermediate_size", 3072}, {"max_position_embeddings", 514},
                     {"type_vocab_size", 1},      {"layer_norm_eps", 1e-5}};
  const ModelConfig model = import_json(json);
  EXPECT_EQ(model.parameters(), 124'697'433);
  EXPECT_EQ(model.first_position, 2);
  EXPECT_EQ(model.positions(), 512);
  EXPECT_TRUE(model.drops_first_row);
  EXPECT_EQ(model_from_json(model_to_json(model), "own"), model);
}

TEST(ImportHuggingFace, SizesThatCannotBeCountedAreRefused) {
  Json json = llama("LlamaForCausalLM", "llama");
  json["vocab_size"] = INT64_MAX;
  EXPECT_CONTAINS(refusal(json), "model.vocab: 9223372036854775807 is above 1000000000");
  json["vocab_size"] = 1'000'000'000;
  EXPECT_EQ(import_json(json).embedding_parameters(), 4'096'000'000'000);
  json["num_hidden_layers"] = 1'000'000'000;
  EXPECT_CONTAINS(refusal(json), "more than 1e15 parameters");
}

TEST(ImportHuggingFace, UnsupportedFeaturesAreRefusedByKey) {
  const auto changed = [](const char* key, const Json& value) {
    Json json = llama("LlamaForCausalLM", "llama");
    json[key] = value;
    return refusal(json);
  };
  EXPECT_CONTAINS(changed("rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}}),
                  "rope_scaling.low_freq_factor: is missing");
  EXPECT_CONTAINS(changed("rope_scaling", {{"rope_type", "yarm"}, {"factor", 4.0}}),
                  "the nearest is \"yarn\"");
  EXPECT_CONTAINS(changed("rope_parameters", {{"full_attention", {{"rope_type", "default"}}},
                                              {"rope_type", "default"}}),
                  "full_attention");
  Json scaling = {{"rope_type", "llama3"},
                  {"factor", 0.5},
                  {"low_freq_factor", 4.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 8192}};
  EXPECT_CONTAINS(changed("rope_scaling", scaling), "rope_scaling.factor: is not at least 1");
  scaling["factor"] = 8.0;
  EXPECT_CONTAINS(changed("rope_scaling", scaling), "high_freq_factor: is not above");
  EXPECT_CONTAINS(changed("hidden_act", "gelu"), "hidden_act");
  EXPECT_CONTAINS(changed("num_local_experts", 8), "num_local_experts");
  EXPECT_CONTAINS(changed("partial_rotary_factor", 1.5), "rotary_fraction");
  EXPECT_CONTAINS(changed("layer_types", {"full_attention", "sliding_attention", "x"}),
                  "layer_types");
  EXPECT_CONTAINS(changed("num_attention_heads", 33), "model.heads: 33");
  EXPECT_CONTAINS(changed("hidden_size", "big"), "hidden_size: \"big\"");
  Json swish = gpt2();
  swish["activation_function"] = "relu";
  EXPECT_CONTAINS(refusal(swish), "activation_function");
  Json missing = gpt2();
  missing.erase("n_layer");
  EXPECT_CONTAINS(refusal(missing), "n_layer: is missing");
}

// Every field of a model, away from its default, survives its JSON form; old files say linear_bias.
TEST(ImportHuggingFace, BiasesAreApart) {
  Json json = llama("LlamaForCausalLM", "llama");
  json["attention_bias"] = true;
  const ModelConfig model = import_json(json);
  EXPECT_TRUE(model.qkv_bias && model.out_bias && !model.mlp_bias);
  EXPECT_EQ(model_from_json(model_to_json(model), "own"), model);
  EXPECT_FALSE(model_to_json(model).contains("linear_bias"));
  json["mlp_bias"] = true;
  EXPECT_EQ(model_to_json(import_json(json))["linear_bias"], true);
  Json old = model_to_json(import_json(json));
  EXPECT_EQ(model_from_json(old, "old"), import_json(json));
}

// The rotary positions that the zoo of golden models does not have.
TEST(ImportHuggingFace, OtherRotaryPositions) {
  Json json = llama("LlamaForCausalLM", "llama");
  json["rope_scaling"] = {{"type", "dynamic"}, {"factor", 2.0}};
  ModelConfig model = import_json(json);
  EXPECT_EQ(model.rope_scaling.original, 8192);
  const auto table = [&](std::int64_t length) {
    return rope_table(model.rope_theta, model.rotary_width(), model.rope_scaling, length);
  };
  const auto plain = rope_table(model.rope_theta, model.rotary_width(), {}, 1).frequencies;
  EXPECT_EQ(table(8192).frequencies, plain);
  // Twice the length, twice the factor: the base times 3^(d/(d-2)), so that the last pair turns 3
  // times as slowly.
  EXPECT_NEAR(plain.back() / table(16384).frequencies.back(), 3, 1e-9);
  EXPECT_EQ(table(16384).frequencies.front(), 1);
  json["rope_scaling"] = {{"rope_type", "yarn"},
                          {"factor", 4.0},
                          {"mscale", 2.0},
                          {"mscale_all_dim", 1.0},
                          {"truncate", false}};
  json["rope_theta"] = 10000.0;
  model = import_json(json);
  EXPECT_EQ(model_from_json(model_to_json(model), "own"), model);
  EXPECT_NEAR(table(1).multiplier, (0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1), 1e-12);
  EXPECT_EQ(table(1).frequencies.front(), 1);
  EXPECT_EQ(plain.size(), 64U);
  EXPECT_LT(table(1).frequencies.back(), 0.3 * std::pow(10000.0, -63.0 / 64));
}

}  // namespace
}  // namespace zl
