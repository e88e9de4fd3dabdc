#include "scenarios/files/import_huggingface.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
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
    double exponent = 0;
    for (const Json& expected : golden["frequencies"]) {
      const double frequency = std::pow(model.rope_theta, exponent);
      EXPECT_NEAR(model.rope_scaling.apply(frequency) / expected.get<double>(), 1, 1e-6);
      EXPECT_EQ(RopeScaling{}.apply(frequency), frequency);
      exponent -= 2.0 / static_cast<double>(model.head_size);
    }
    const Json own = model_to_json(model);
    EXPECT_EQ(model_to_json(model_from_json(own, "own")), own);
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
  EXPECT_CONTAINS(refusal(json), "config.json: use_sliding_window: true is not supported");
}

TEST(ImportHuggingFace, OtherArchitecturesAreRefusedByName) {
  for (const auto& [architecture, type] : {std::pair{"BertForMaskedLM", "bert"},
                                           {"MixtralForCausalLM", "mixtral"},
                                           {"LlamaForSequenceClassification", "llama"},
                                           {"GemmaForCausalLM", "gemma"}}) {
    const std::string message = refusal(llama(architecture, type));
    EXPECT_CONTAINS(message, architecture);
    EXPECT_CONTAINS(message, "supported are GPT2LMHeadModel");
  }
  EXPECT_CONTAINS(refusal({{"model_type", "t5"}, {"d_model", 512}}), "\"t5\" is not supported");
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
  EXPECT_CONTAINS(changed("rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}),
                  "(\"llama3\") or not at all");
  Json scaling = {{"rope_type", "llama3"},
                  {"factor", 0.5},
                  {"low_freq_factor", 4.0},
                  {"high_freq_factor", 4.0},
                  {"original_max_position_embeddings", 8192}};
  EXPECT_CONTAINS(changed("rope_scaling", scaling), "rope_scaling.factor: is not at least 1");
  scaling["factor"] = 8.0;
  EXPECT_CONTAINS(changed("rope_scaling", scaling), "high_freq_factor: is not above");
  EXPECT_CONTAINS(changed("hidden_act", "gelu"), "hidden_act");
  EXPECT_CONTAINS(changed("attention_bias", true), "attention_bias");
  EXPECT_CONTAINS(changed("mlp_bias", true), "mlp_bias");
  EXPECT_CONTAINS(changed("num_local_experts", 8), "num_local_experts");
  EXPECT_CONTAINS(changed("partial_rotary_factor", 0.5), "partial_rotary_factor");
  EXPECT_CONTAINS(changed("layer_types", {"full_attention", "sliding_attention", "x"}),
                  "layer_types");
  EXPECT_CONTAINS(changed("num_attention_heads", 33), "model.heads: 33");
  EXPECT_CONTAINS(changed("hidden_size", "big"), "hidden_size: \"big\"");
  Json both = llama("LlamaForCausalLM", "llama");
  both["attention_bias"] = both["mlp_bias"] = true;
  EXPECT_TRUE(import_json(both).linear_bias && import_json(both).qkv_bias);
  Json swish = gpt2();
  swish["activation_function"] = "relu";
  EXPECT_CONTAINS(refusal(swish), "activation_function");
  Json missing = gpt2();
  missing.erase("n_layer");
  EXPECT_CONTAINS(refusal(missing), "n_layer: is missing");
}

}  // namespace
}  // namespace zl
