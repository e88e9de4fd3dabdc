#include "scenarios/files/file_kind.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace zl {
namespace {

FileKind kind_of(const char* text) { return file_kind(parse_json(text, "f.json")); }

TEST(FileKind, IsToldByTheKeys) {
  EXPECT_EQ(kind_of(R"({"schema": 1, "model": "gpt2-tiny"})"), FileKind::scenario);
  EXPECT_EQ(kind_of(R"({"name": "mine", "family": "llama", "layers": 2})"), FileKind::model);
  EXPECT_EQ(kind_of(R"({"architectures": ["GPT2LMHeadModel"], "n_layer": 2})"), FileKind::model);
  EXPECT_EQ(kind_of(R"({"train_batch_size": 8, "zero_optimization": {"stage": 2}, "x-a": 1})"),
            FileKind::strategy);
  EXPECT_EQ(kind_of(R"({"train_batch_size": 8, "modle": 1})"), FileKind::unknown);
  EXPECT_EQ(kind_of("{}"), FileKind::unknown);
  EXPECT_EQ(kind_of("[1]"), FileKind::unknown);
}

TEST(FileKind, BytesThatAreNoText) {
  EXPECT_EQ(binary_kind("In the beginning"), "");
  EXPECT_EQ(binary_kind(""), "");
  EXPECT_EQ(binary_kind(std::string("\x10\0\0\0\0\0\0\0{\"a\":1}", 15)), "a safetensors file");
  EXPECT_EQ(binary_kind(std::string(9, '\0')), "binary data");
}

TEST(FileKind, PicklesAreRefusedWithTheReason) {
  const std::string zip("PK\x03\x04\0\0\x08\x08 archive/data.pkl", 25);
  const std::string old("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", 15);
  for (const std::string& bytes : {zip, old}) {
    try {
      require_no_pickle(bytes, "pytorch_model.bin");
      FAIL() << "accepted";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("pytorch_model.bin: this is a PyTorch checkpoint"))
          << message;
      EXPECT_NE(message.find("model.safetensors"), std::string::npos) << message;
    }
  }
  require_no_pickle("PK\x03\x04 another archive", "a.zip");
  require_no_pickle("\x80\x02 tokens", "a.bin");
  require_no_pickle("", "empty");
}

}  // namespace
}  // namespace zl
