// GGUF files as Hugging Face folders: weights to the bit, configs, tokenizers, damage.
#include "scenarios/files/import_gguf.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/checkpoint/gguf.h"
#include "core/checkpoint/safetensors.h"
#include "scenarios/files/gguf_config.h"
#include "tests/scenarios/gguf_writer.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

const std::string kGolden = ZL_SOURCE_DIR "/tests/golden/models/gguf/";

Json read_json(const fs::path& path) { return Json::parse(std::ifstream(path)); }

TEST(ImportGguf, WeightsAreThoseOfTheHuggingFaceModelToTheBit) {
  const test::TempFolder folder;
  const GgufImport done = import_gguf(kGolden + "model.gguf", folder / "a", DType::f32, false);
  EXPECT_EQ(done.model_type, "llama");
  EXPECT_FALSE(done.has_tokenizer);
  const SafetensorsFile wanted = read_safetensors(kGolden + "model.safetensors");
  const SafetensorsFile got = read_safetensors(folder / "a" / "model.safetensors");
  ASSERT_EQ(got.tensors.size(), wanted.tensors.size());
  EXPECT_EQ(got.metadata.at("format"), "pt");
  for (const NamedTensor& tensor : wanted.tensors) {
    const NamedTensor& same = got.at(tensor.name);
    EXPECT_EQ(same.shape, tensor.shape);
    EXPECT_TRUE(std::ranges::equal(same.bytes, tensor.bytes)) << tensor.name;
  }
}

TEST(ImportGguf, TheConfigIsThatOfTheHuggingFaceModel) {
  const test::TempFolder folder;
  import_gguf(kGolden + "model.gguf", folder / "a", DType::f32, false);
  const Json got = read_json(folder / "a" / "config.json");
  const Json wanted = read_json(kGolden + "config.json");
  for (const auto& [key, value] : wanted.items()) {
    // Not in the file, or of transformers alone.
    if (key.ends_with("token_id") || key == "transformers_version" || key == "pretraining_tp" ||
        key == "use_cache") {
      continue;
    }
    if (key == "rope_parameters") {
      for (const auto& [name, number] : value.items()) EXPECT_EQ(got[key][name], number) << name;
    } else {
      EXPECT_EQ(got[key], value) << key;
    }
  }
  EXPECT_EQ(got["rope_theta"], 500000);
  EXPECT_EQ(got["rope_scaling"]["factor"], 8);
}

TEST(ImportGguf, HalvesAreRoundedToTheNearest) {
  const test::TempFolder folder;
  import_gguf(kGolden + "model.gguf", folder / "a", DType::bf16, false);
  const SafetensorsFile got = read_safetensors(folder / "a" / "model.safetensors");
  const SafetensorsFile wanted = read_safetensors(kGolden + "model.safetensors");
  const NamedTensor& head = got.at("lm_head.weight");
  EXPECT_EQ(head.dtype, DType::bf16);
  float value = 0;
  std::memcpy(&value, wanted.at("lm_head.weight").bytes.data(), sizeof value);
  bfloat16 rounded{};
  std::memcpy(&rounded.bits, head.bytes.data(), sizeof rounded.bits);
  EXPECT_EQ(rounded.bits, to_bfloat16(value).bits);
  EXPECT_EQ(read_json(folder / "a" / "config.json")["torch_dtype"], "bfloat16");
  EXPECT_THROW(import_gguf(kGolden + "model.gguf", folder / "b", DType::i32, false), Error);
  EXPECT_FALSE(fs::exists(folder / "b"));
}

TEST(ImportGguf, KeepsWhatIsThere) {
  const test::TempFolder folder;
  std::ofstream(folder / "config.json") << "mine";
  try {
    import_gguf(kGolden + "model.gguf", folder.string(), DType::f32, false);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("config.json: it is already there; --force"),
              std::string::npos);
  }
  EXPECT_FALSE(fs::exists(folder / "model.safetensors"));
  import_gguf(kGolden + "model.gguf", folder.string(), DType::f32, true);
  EXPECT_EQ(read_json(folder / "config.json")["model_type"], "llama");
}

TEST(ImportGguf, ShortestDecimals) {
  EXPECT_EQ(shortest_decimal(1e-6f), 1e-6);
  EXPECT_EQ(shortest_decimal(1e-5f), 1e-5);
  EXPECT_EQ(shortest_decimal(500000.0f), 500000);
}

class Families : public testing::Test {
 protected:
  SafetensorsFile import_model(test::GgufWriter& file) {
    file.save(path_);
    import_gguf(path_, (folder_ / "out").string(), DType::f32, true);
    return read_safetensors((folder_ / "out" / "model.safetensors").string());
  }

  Json config() const { return read_json(folder_ / "out" / "config.json"); }

  void expect_refused(test::GgufWriter file, const std::string& defect) {
    file.save(path_);
    try {
      import_gguf(path_, (folder_ / "out").string(), DType::f32, true);
      FAIL() << "accepted: " << defect;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(path_)) << message;
      EXPECT_NE(message.find(defect), std::string::npos) << message;
    }
  }

  test::TempFolder folder_;
  const std::string path_ = (folder_ / "x.gguf").string();
};

float first_of_row(const NamedTensor& tensor, std::size_t row) {
  float value = 0;
  const auto columns = tensor.shape.size() == 2 ? static_cast<std::size_t>(tensor.shape[1]) : 1;
  std::memcpy(&value, tensor.bytes.data() + row * columns * sizeof value, sizeof value);
  return value;
}

TEST_F(Families, OnlyLlamaHasPairsOfRows) {
  const char* q = "model.layers.0.self_attn.q_proj.weight";
  test::GgufWriter llama = test::tiny_gguf("llama"), qwen = test::tiny_gguf("qwen2");
  llama.tensor("blk.0.attn_q.bias", {8});
  const SafetensorsFile paired = import_model(llama);
  // HF row p * 2 + j of a head is row 2 * j + p of the file.
  const std::vector<float> order{0, 2, 1, 3, 4, 6, 5, 7};
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(first_of_row(paired.at(q), row), 8 * order[row]);
    EXPECT_EQ(first_of_row(paired.at("model.layers.0.self_attn.q_proj.bias"), row), order[row]);
  }
  EXPECT_EQ(config()["attention_bias"], true);
  EXPECT_EQ(config()["tie_word_embeddings"], true);
  const SafetensorsFile plain = import_model(qwen);
  EXPECT_EQ(first_of_row(plain.at(q), 1), 8);
  EXPECT_EQ(config()["model_type"], "qwen2");
}

TEST_F(Families, GemmaStoresNormsWithOneAdded) {
  test::GgufWriter gemma = test::tiny_gguf("gemma");
  const SafetensorsFile file = import_model(gemma);
  EXPECT_EQ(first_of_row(file.at("model.norm.weight"), 3), 2);
  EXPECT_EQ(first_of_row(file.at("model.layers.0.self_attn.q_proj.weight"), 1), 8);
  EXPECT_EQ(config()["hidden_act"], "gelu_pytorch_tanh");
}

TEST_F(Families, Phi3AndQwen3HaveTheirOwnTensors) {
  test::GgufWriter phi = test::tiny_gguf("phi3"), qwen = test::tiny_gguf("qwen3");
  phi.integer("phi3.attention.sliding_window", 7);
  EXPECT_EQ(import_model(phi).at("model.layers.0.mlp.gate_up_proj.weight").shape[0], 12);
  EXPECT_EQ(config()["sliding_window"], 7);
  EXPECT_EQ(import_model(qwen).at("model.layers.0.self_attn.k_norm.weight").shape[0], 4);
}

TEST_F(Families, AWindowMakesALlamaAMistral) {
  test::GgufWriter file = test::tiny_gguf("llama");
  file.integer("llama.attention.sliding_window", 9);
  import_model(file);
  EXPECT_EQ(config()["model_type"], "mistral");
  EXPECT_EQ(config()["sliding_window"], 9);
}

TEST_F(Families, RotaryScalings) {
  test::GgufWriter linear = test::tiny_gguf("llama");
  linear.text("llama.rope.scaling.type", "linear");
  linear.number("llama.rope.scaling.factor", 2.5f);
  import_model(linear);
  EXPECT_EQ(config()["rope_scaling"]["rope_type"], "linear");
  EXPECT_EQ(config()["rope_scaling"]["factor"], 2.5);
  test::GgufWriter odd = test::tiny_gguf("llama");
  odd.tensor("rope_freqs.weight", {2});  // 0 and 1
  expect_refused(odd, "rope_freqs.weight is not the scaling");
}

TEST_F(Families, NamesWhatCannotBeImported) {
  expect_refused(test::tiny_gguf("mamba"), "general.architecture is \"mamba\"; llama, mistral");
  test::GgufWriter more = test::tiny_gguf("llama");
  more.tensor("blk.0.attn_sinks.weight", {2});
  expect_refused(more, "tensor blk.0.attn_sinks.weight is not known");
  test::GgufWriter deep = test::tiny_gguf("llama");
  deep.integer("llama.block_count", 2);
  expect_refused(deep, "tensor blk.1.attn_norm.weight is missing; blk.1.attn_q.weight is missing");
  test::GgufWriter wide = test::tiny_gguf("llama");
  wide.integer("llama.feed_forward_length", 5);
  expect_refused(wide, "blk.0.ffn_gate.weight has the shape [6,8], not [5,8]");
  test::GgufWriter heads = test::tiny_gguf("llama");
  heads.integer("llama.attention.head_count_kv", 0);
  expect_refused(heads, "with 0 key heads");
}

}  // namespace
}  // namespace zl
