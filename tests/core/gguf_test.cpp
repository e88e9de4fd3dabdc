// GGUF: blocks against the reference's numbers, a file of llama.cpp's layout, damage.
#include "core/checkpoint/gguf.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/tensor_file.h"
#include "tests/temp_folder.h"

namespace zl {
namespace {

const std::string kGgufFolder = ZL_SOURCE_DIR "/tests/golden/models/gguf/";

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

TEST(GgufTypes, BlocksAreTheReferencesToTheBit) {
  const std::map<std::string, GgufType> types{{"Q4_0", GgufType::q4_0}, {"Q4_1", GgufType::q4_1},
                                              {"Q5_0", GgufType::q5_0}, {"Q5_1", GgufType::q5_1},
                                              {"Q8_0", GgufType::q8_0}, {"Q4_K", GgufType::q4_k},
                                              {"Q5_K", GgufType::q5_k}, {"Q6_K", GgufType::q6_k}};
  std::ifstream in(kGgufFolder + "blocks.json");
  const auto golden = nlohmann::json::parse(in);
  ASSERT_EQ(golden.size(), types.size());
  for (const auto& [name, entry] : golden.items()) {
    const auto blocks = from_hex(entry["blocks_hex"]);
    const auto wanted = from_hex(entry["values_f32_le_hex"]);
    std::vector<float> values(wanted.size() / sizeof(float));
    dequantize_gguf(types.at(name), blocks, values);
    EXPECT_EQ(std::memcmp(values.data(), wanted.data(), wanted.size()), 0) << name;
    EXPECT_EQ(gguf_type_name(static_cast<std::uint32_t>(types.at(name))), name);
  }
}

TEST(GgufTypes, HalvesAndTheirNames) {
  const std::vector<std::byte> one_half = from_hex("0038");  // 0.5 as fp16, 1.1e-13 or so as bf16
  float value = 0;
  dequantize_gguf(GgufType::f16, one_half, {&value, 1});
  EXPECT_EQ(value, 0.5f);
  dequantize_gguf(GgufType::bf16, from_hex("803f"), {&value, 1});
  EXPECT_EQ(value, 1.0f);
  EXPECT_EQ(gguf_block(10).bytes, 0);
  EXPECT_EQ(gguf_type_name(10), "Q2_K");
  EXPECT_EQ(gguf_type_name(1000), "type 1000");
}

TEST(Gguf, MetadataAndTensors) {
  const GgufFile file(kGgufFolder + "model.gguf");
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("llama.block_count"), 2);
  EXPECT_EQ(static_cast<float>(*file.number("llama.attention.layer_norm_rms_epsilon")), 1e-6f);
  EXPECT_FALSE(file.text("general.name"));
  EXPECT_THROW(file.text("llama.block_count"), Error);
  EXPECT_EQ(file.tensors().size(), 22u);
  const GgufTensor* head = file.find("output.weight");
  ASSERT_NE(head, nullptr);
  EXPECT_EQ(head->shape, (std::vector<std::int64_t>{48, 16}));
  const SafetensorsFile model = read_safetensors(kGgufFolder + "model.safetensors");
  std::vector<float> values(32);
  file.read(*head, 16, values);  // the second row and the third
  std::vector<float> expected(32);
  std::memcpy(expected.data(), model.at("lm_head.weight").bytes.data() + 64, 128);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(file.find("nothing"), nullptr);
}

class DamagedGguf : public testing::Test {
 protected:
  DamagedGguf() {
    std::ifstream in(kGgufFolder + "model.gguf", std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }

  void expect_refused(const std::string& bytes, const std::string& defect) const {
    const std::string path = (folder_ / "x.gguf").string();
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    try {
      GgufFile file(path);
      for (const GgufTensor& tensor : file.tensors()) {
        std::vector<float> values(static_cast<std::size_t>(tensor.elements));
        file.read(tensor, 0, values);
      }
      FAIL() << "accepted: " << defect;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(path + ": ")) << message;
      EXPECT_NE(message.find(defect), std::string::npos) << message;
    }
  }

  template <class T>
  std::string with(std::size_t at, T value) const {
    std::string bytes = bytes_;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  }

  std::size_t behind(const std::string& text) const { return bytes_.find(text) + text.size(); }

  test::TempFolder folder_;
  std::string bytes_;
};

TEST_F(DamagedGguf, IsNamed) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
  expect_refused("", "no GGUF file");
  expect_refused(with(0, 'X'), "no GGUF file");
  expect_refused(with(4, std::uint32_t{0x03000000}), "big-endian");
  expect_refused(with(4, std::uint32_t{1}), "version 1");
  expect_refused(with(8, kHuge), "the list of tensors");
  expect_refused(with(16, kHuge), "the metadata");
  expect_refused(with(24, kHuge), "key 0");
  expect_refused(with(behind("general.architecture"), std::uint32_t{99}), "unknown type 99");
  expect_refused(with(behind("general.architecture"), std::uint32_t{9}), "general.architecture");
  const std::size_t head = behind("output.weight");
  expect_refused(with(head, std::uint32_t{9}), "9 dimensions");
  expect_refused(with(head + 4, kHuge), "more elements than");
  expect_refused(with(head + 4, std::uint64_t{1} << 40), "runs past the end");
  expect_refused(with(head + 20, std::uint32_t{2}), "no multiple of 32 as Q4_0 needs");
  expect_refused(with(head + 20, std::uint32_t{10}), "\"output.weight\" is of Q2_K");
  expect_refused(with(head + 24, std::uint64_t{7}), "alignment");
  expect_refused(with(head + 24, kHuge), "behind the file");
}

TEST_F(DamagedGguf, AnywhereCutShort) {
  for (std::size_t size = 0; size < bytes_.size(); size += 97) {
    expect_refused(bytes_.substr(0, size), "");
  }
}

TEST(TensorFileWriter, WritesWhatTheReaderReads) {
  const test::TempFolder folder;
  const std::string path = (folder / "a.safetensors").string();
  const std::vector<TensorFileWriter::Tensor> tensors{{"a", DType::bf16, {2, 2}},
                                                      {"b", DType::f32, {}}};
  const std::vector<float> values{1, 2, -3, 4, 5};
  {
    TensorFileWriter writer(path, tensors, {{"format", "pt"}});
    writer.append(std::span(values).first(2));
    EXPECT_THROW(writer.commit(), Error);
    EXPECT_FALSE(is_file(path));
    writer.append(std::span(values).subspan(2));
    EXPECT_THROW(writer.append(values), Error);
  }
  EXPECT_FALSE(is_file(path));
  TensorFileWriter writer(path, tensors, {});
  writer.append(values);
  writer.commit();
  const TensorFile file(path);
  std::vector<float> read(4);
  file.read(*file.find("a"), 0, read);
  EXPECT_EQ(read, (std::vector<float>{1, 2, -3, 4}));
  const SafetensorsFile whole = read_safetensors(path);
  float last = 0;
  std::memcpy(&last, whole.at("b").bytes.data(), sizeof last);
  EXPECT_EQ(last, values[4]);
  EXPECT_THROW(TensorFileWriter(path, {{"a"}, {"a"}}, {}), Error);
}

}  // namespace
}  // namespace zl
