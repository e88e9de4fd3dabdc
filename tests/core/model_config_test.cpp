#include "core/model/model_config.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/model/parameters.h"

namespace zl {
namespace {

ModelConfig gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  ModelConfig model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.vocab = 50257;
  return model;
}

std::string message_of(ModelConfig model) {
  try {
    model.complete();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "";
}

TEST(ModelConfig, FillsDefaults) {
  ModelConfig model = gpt2(12, 768, 12);
  model.complete();
  EXPECT_EQ(model.head_size, 64);
  EXPECT_EQ(model.kv_heads, 12);
  EXPECT_EQ(model.ffn, 3072);
  EXPECT_EQ(model.qkv_width(), 3 * 768);
}

TEST(ModelConfig, CountsGpt2) {
  ModelConfig model = gpt2(12, 768, 12);
  model.complete();
  EXPECT_EQ(model.parameters(), 124'439'808);
  EXPECT_EQ(model.embedding_parameters(), (50257 + 1024) * 768);
  EXPECT_DOUBLE_EQ(model.flops_per_token(1024), 6.0 * 124439808 + 12.0 * 12 * 768 * 1024);
}

// The closed form 12 L h^2 + 13 L h + V h + T h + 2 h of a GPT-2, independent of the code's terms.
TEST(ModelConfig, MatchesTheClosedFormOfGpt2) {
  for (std::int64_t layers : {1, 3, 48}) {
    for (std::int64_t hidden : {64, 320, 1600}) {
      ModelConfig model = gpt2(layers, hidden, 4);
      model.max_sequence = 77;
      model.complete();
      EXPECT_EQ(model.parameters(),
                12 * layers * hidden * hidden + 13 * layers * hidden + (50257 + 77 + 2) * hidden);
    }
  }
}

// What each switch adds, and that the table has as many.
TEST(ModelConfig, CountsWhatEachSwitchAdds) {
  ModelConfig plain = gpt2(3, 64, 4);
  plain.head_size = 24;
  plain.qkv_bias = plain.out_bias = plain.mlp_bias = false;
  plain.complete();
  const auto added = [&](bool ModelConfig::*flag) {
    ModelConfig model = plain;
    model.*flag = true;
    EXPECT_EQ(ParameterTable(model).count(), model.parameters());
    return (model.parameters() - plain.parameters()) / 3;
  };
  EXPECT_EQ(added(&ModelConfig::qkv_bias), 3 * 96);
  EXPECT_EQ(added(&ModelConfig::out_bias), 64);
  EXPECT_EQ(added(&ModelConfig::mlp_bias), 256 + 64);
  EXPECT_EQ(added(&ModelConfig::qk_norm), 2 * 24);
  EXPECT_EQ(added(&ModelConfig::norm_plus_one), 0);
  ModelConfig gated = plain;
  gated.activation = ActivationKind::geglu_tanh;
  EXPECT_EQ((gated.parameters() - plain.parameters()) / 3, 64 * 256);
}

TEST(ModelConfig, WindowsAreOfTheListedLayers) {
  ModelConfig model = gpt2(3, 64, 4);
  model.complete();
  const double full = model.flops_per_token(100), of_layer = 12.0 * 64 * 100;
  model.sliding_window = 10;
  EXPECT_EQ(model.window_of(1), 10);
  EXPECT_DOUBLE_EQ(model.flops_per_token(100), full - 3 * 0.9 * of_layer);
  EXPECT_DOUBLE_EQ(model.flops_per_token(10),
                   6.0 * static_cast<double>(model.parameters()) + 12.0 * 3 * 64 * 10);
  model.sliding_layers = {0, 2};
  EXPECT_EQ(model.window_of(1), 0);
  EXPECT_EQ(model.window_of(2), 10);
  EXPECT_DOUBLE_EQ(model.flops_per_token(100), full - 2 * 0.9 * of_layer);
  model.sliding_layers = {1, 3};
  EXPECT_NE(message_of(model).find("model.sliding_layers: 3 is no layer of 0 to 2"),
            std::string::npos);
}

TEST(ModelConfig, UntyingAddsOneTable) {
  ModelConfig model = gpt2(2, 64, 4);
  model.complete();
  const std::int64_t tied = model.parameters();
  model.tied_embeddings = false;
  EXPECT_EQ(model.parameters(), tied + 50257 * 64);
}

TEST(ModelConfig, RefusesWhatCannotBe) {
  EXPECT_NE(message_of(gpt2(12, 768, 7)).find("model.heads: 7 does not divide model.hidden 768"),
            std::string::npos);
  EXPECT_NE(message_of(gpt2(0, 768, 12)).find("model.layers: 0"), std::string::npos);
  ModelConfig grouped = gpt2(2, 64, 4);
  grouped.kv_heads = 3;
  EXPECT_NE(message_of(grouped).find("model.kv_heads: 3"), std::string::npos);
  ModelConfig odd = gpt2(2, 36, 4);
  odd.position = PositionKind::rope;
  EXPECT_NE(message_of(odd).find("model.head_size: 9"), std::string::npos);
  ModelConfig part = gpt2(2, 64, 4);
  part.position = PositionKind::rope;
  part.rotary_fraction = 0.2;
  EXPECT_NE(message_of(part).find("model.rotary_fraction: 3 of 16 elements is odd"),
            std::string::npos);
}

TEST(ModelConfig, AcceptsAnExplicitHeadSize) {
  ModelConfig model = gpt2(2, 64, 5);
  model.head_size = 16;
  EXPECT_EQ(message_of(model), "");
}

}  // namespace
}  // namespace zl
