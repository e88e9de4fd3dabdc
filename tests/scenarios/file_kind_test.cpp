#include "scenarios/files/file_kind.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace zl
