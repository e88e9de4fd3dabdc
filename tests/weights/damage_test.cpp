// Weights that are not the model's: one error that names what is wrong, before anything is read.
#include <fstream>
#include <functional>

#include "core/checkpoint/safetensors.h"
#include "tests/temp_folder.h"
#include "tests/weights/zoo.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;

std::string message(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "nothing";
}

// A copy of a model of the zoo, to be damaged.
class Damaged {
 public:
  explicit Damaged(const std::string& name) {
    fs::copy(zoo(name), folder_.path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  std::string path(const std::string& file) const { return (folder_ / file).string(); }
  void edit(const std::string& file, const std::function<void(nlohmann::json&)>& change) {
    auto object = nlohmann::json::parse(read_file(path(file)));
    change(object);
    std::ofstream(path(file)) << object;
  }
  // Writes the one file of weights anew.
  void tensors(const std::function<void(std::vector<NamedTensor>&)>& change) {
    const SafetensorsFile file = read_safetensors(path("model.safetensors"));
    std::vector<NamedTensor> all = file.tensors;
    change(all);
    write_safetensors(path("model.safetensors"), all);
  }
  std::string error() const {
    return message([this] { ModelWeights(folder_.string(), load_model(folder_.string())); });
  }

 private:
  TempFolder folder_;
};

TEST(DamagedWeights, AreNamed) {
  Damaged missing("llama_gqa");
  missing.tensors([](auto& all) { all.erase(all.begin()); });
  EXPECT_NE(missing.error().find(" is missing"), std::string::npos) << missing.error();

  Damaged shape("llama_gqa");
  shape.edit("config.json", [](auto& config) { config["intermediate_size"] = 20; });
  EXPECT_NE(shape.error().find("mlp.gate_proj.weight is ["), std::string::npos) << shape.error();

  Damaged extra("llama_gqa");
  extra.tensors([](auto& all) {
    all.push_back(all.front());
    all.back().name = "model.layers.0.mystery.weight";
  });
  EXPECT_NE(extra.error().find("model.layers.0.mystery.weight is not used"), std::string::npos);

  Damaged type("llama_gqa");
  type.tensors([](auto& all) { all.front().dtype = DType::i32; });
  EXPECT_NE(type.error().find("is of I32, not of F32, F16 or BF16"), std::string::npos);
}

TEST(DamagedWeights, UpToTenDefectsAreListedAtOnce) {
  Damaged other("llama_gqa");
  fs::copy(zoo("gpt2") + "/model.safetensors", other.path("model.safetensors"),
           fs::copy_options::overwrite_existing);
  const std::string error = other.error();
  EXPECT_NE(error.find("model.embed_tokens.weight is missing"), std::string::npos) << error;
  EXPECT_NE(error.find(" more"), std::string::npos) << error;
}

TEST(DamagedWeights, AnUntiedHeadMayNotBeMissing) {
  Damaged head("llama_gqa");
  head.tensors([](auto& all) {
    std::erase_if(all, [](const NamedTensor& tensor) { return tensor.name == "lm_head.weight"; });
  });
  EXPECT_NE(head.error().find("lm_head.weight is missing"), std::string::npos) << head.error();
}

TEST(DamagedWeights, ATiedHeadMayBeThereWhereItIsTheEmbedding) {
  Damaged tied("qwen2");
  tied.edit("config.json", [](auto& config) { config["tie_word_embeddings"] = true; });
  const std::string differs = tied.error();
  EXPECT_TRUE(differs == "nothing" || differs.find("tie_word_embeddings") != std::string::npos);
  tied.tensors([](auto& all) {
    NamedTensor head;
    for (const NamedTensor& tensor : all) {
      if (tensor.name == "model.embed_tokens.weight") head = tensor;
    }
    std::erase_if(all, [](const NamedTensor& tensor) { return tensor.name == "lm_head.weight"; });
    head.name = "lm_head.weight";
    all.push_back(head);
  });
  EXPECT_EQ(tied.error(), "nothing");
  // Alone it stands for the embedding.
  tied.tensors([](auto& all) {
    std::erase_if(
        all, [](const NamedTensor& tensor) { return tensor.name == "model.embed_tokens.weight"; });
  });
  EXPECT_EQ(tied.error(), "nothing");
}

TEST(DamagedWeights, BuffersArePassedOver) {
  Damaged buffers("gpt2");
  const std::vector<std::byte> bytes(16);
  buffers.tensors([&](auto& all) {
    all.push_back({"transformer.h.0.attn.bias", DType::u8, {1, 1, 4, 4}, bytes});
    all.push_back({"transformer.h.0.attn.masked_bias", DType::f32, {4}, bytes});
  });
  EXPECT_EQ(buffers.error(), "nothing");
}

TEST(DamagedWeights, NamesOfABareModelLackThePrefix) {
  Damaged bare("gpt2");
  const std::string prefix = "transformer.";
  bare.tensors([&](auto& all) {
    for (NamedTensor& tensor : all) {
      if (tensor.name.starts_with(prefix)) tensor.name = tensor.name.substr(prefix.size());
    }
  });
  EXPECT_EQ(bare.error(), "nothing");
}

TEST(DamagedWeights, IndicesAreChecked) {
  constexpr const char* kIndex = "model.safetensors.index.json";
  Damaged gone("llama_gqa_sharded");
  fs::remove(gone.path("model-00002-of-00003.safetensors"));
  EXPECT_NE(gone.error().find("the file model-00002-of-00003.safetensors is missing"),
            std::string::npos);

  Damaged outside("llama_gqa_sharded");
  outside.edit(kIndex, [](auto& index) { index["weight_map"]["lm_head.weight"] = "../a"; });
  EXPECT_NE(outside.error().find("\"../a\" is not the name of a file beside it"),
            std::string::npos);

  Damaged wrong("llama_gqa_sharded");
  wrong.edit(kIndex, [](auto& index) {
    index["weight_map"]["model.nothing.weight"] = "model-00001-of-00003.safetensors";
  });
  EXPECT_NE(wrong.error().find("\"model.nothing.weight\", which"), std::string::npos);

  Damaged none("llama_gqa_sharded");
  none.edit(kIndex, [](auto& index) { index.erase("weight_map"); });
  EXPECT_NE(none.error().find("weight_map is not an object"), std::string::npos);
}

TEST(DamagedWeights, FilesThatEndEarlyAreNamed) {
  Damaged cut("llama_gqa");
  fs::resize_file(cut.path("model.safetensors"), 3000);
  EXPECT_NE(cut.error().find("truncated"), std::string::npos) << cut.error();
}

TEST(DamagedWeights, PicklesAreRefusedWithTheFix) {
  Damaged pickled("llama_gqa");
  fs::rename(pickled.path("model.safetensors"), pickled.path("pytorch_model.bin"));
  EXPECT_NE(pickled.error().find("save_pretrained writes model.safetensors"), std::string::npos);
}

TEST(DamagedWeights, ATypeThatNothingComputesWithIsNoReasonToRefuseAFile) {
  const TempFolder folder;
  const std::string path = (folder / "mask.safetensors").string();
  const std::string header = R"({"mask":{"dtype":"BOOL","shape":[8],"data_offsets":[0,8]}})";
  const auto length = static_cast<std::uint64_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header << "12345678";
  file.close();
  const TensorFile opened(path);
  ASSERT_NE(opened.find("mask"), nullptr);
  std::vector<float> values(8);
  EXPECT_NE(message([&] { opened.read(*opened.find("mask"), 0, values); }).find("is of BOOL"),
            std::string::npos);
}

}  // namespace
}  // namespace zl::test
