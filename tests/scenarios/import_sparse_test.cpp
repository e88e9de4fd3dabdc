// The section sparse_attention: what its modes read, what they say of themselves, the way back, and
// what is refused.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/model/model_config.h"
#include "scenarios/files/strategy_json.h"
#include "tests/scenarios/importing.h"

namespace zl {
namespace {

std::string sparse(const std::string& keys, const std::string& own = "") {
  return with("\"sparse_attention\": {" + keys + "}" +
              (own.empty() ? "" : ", \"x-zerolab\": {" + own + "}"));
}

SparseAttentionConfig read(const std::string& keys, const std::string& own = "") {
  const Strategy s = import_text(sparse(keys, own)).strategy;
  EXPECT_EQ(import_text(to_text(strategy_to_json(s))).strategy.sparse_attention, s.sparse_attention)
      << keys;
  return s.sparse_attention;
}

TEST(ImportSparse, IsDenseWithoutTheSection) {
  EXPECT_EQ(import_text("{}").strategy.sparse_attention, SparseAttentionConfig{});
  EXPECT_FALSE(strategy_to_json(import_text("{}").strategy).contains("sparse_attention"));
  EXPECT_FALSE(read(R"("mode": "dense", "block": 32)").is_sparse());
}

// The tutorial's section, word for word.
TEST(ImportSparse, ReadsEveryModeAsDeepSpeedWritesIt) {
  EXPECT_EQ(read(R"("mode": "fixed", "block": 16, "different_layout_per_head": true,
                    "num_local_blocks": 4, "num_global_blocks": 1, "attention": "bidirectional",
                    "horizontal_global_attention": false, "num_different_global_patterns": 4)"),
            (SparseAttentionConfig{.mode = SparseMode::fixed,
                                   .different_layout_per_head = true,
                                   .num_different_global_patterns = 4}));
  EXPECT_EQ(read(R"("mode": "variable", "num_random_blocks": 2, "local_window_blocks": [2, 4],
                    "global_block_indices": [0, 6], "global_block_end_indices": [1, 8],
                    "attention": "Unidirectional")",
                 R"("block_seed": 7)"),
            (SparseAttentionConfig{.mode = SparseMode::variable,
                                   .bidirectional = false,
                                   .num_random_blocks = 2,
                                   .local_window_blocks = {2, 4},
                                   .global_block_indices = {0, 6},
                                   .global_block_end_indices = {1, 8},
                                   .seed = 7}));
  EXPECT_EQ(read(R"("mode": "bigbird", "block": 64, "num_random_blocks": 1,
                    "num_sliding_window_blocks": 5, "num_global_blocks": 2)"),
            (SparseAttentionConfig{.mode = SparseMode::bigbird,
                                   .block = 64,
                                   .num_global_blocks = 2,
                                   .num_random_blocks = 1,
                                   .num_sliding_window_blocks = 5}));
  EXPECT_EQ(
      read(R"("mode": "bslongformer", "global_block_indices": [0, 3])"),
      (SparseAttentionConfig{.mode = SparseMode::bslongformer, .global_block_indices = {0, 3}}));
  EXPECT_EQ(read(R"("mode": "local_sliding", "num_sliding_window_blocks": 7)"),
            (SparseAttentionConfig{.mode = SparseMode::local_sliding,
                                   .bidirectional = false,
                                   .num_sliding_window_blocks = 7}));
  EXPECT_EQ(
      read(R"("mode": "layout", "block": 32, "attention": "unidirectional")",
           R"("block_layout": ["#.", "##"])"),
      (SparseAttentionConfig{
          .mode = SparseMode::layout, .block = 32, .bidirectional = false, .rows = {"#.", "##"}}));
  EXPECT_EQ(read(R"("block": 16)").mode, SparseMode::fixed);  // DeepSpeed's default
}

// As DeepSpeed 0.19.6, the last release that reads the section.
TEST(ImportSparse, TakesAnEmptySectionAsModeFixedWithTheDefaults) {
  EXPECT_EQ(read(""), SparseAttentionConfig{.mode = SparseMode::fixed});
  const ImportedStrategy imported = import_text(sparse(""));
  EXPECT_EQ(effect(imported, "sparse_attention.mode").status, EffectStatus::defaulted);
  EXPECT_EQ(effect(imported, "sparse_attention.mode").effective, "\"fixed\"");
  EXPECT_FALSE(
      import_text(with(R"("sparse_attention": null)")).strategy.sparse_attention.is_sparse());
}

TEST(ImportSparse, SaysWhatDiffersFromDeepSpeed) {
  const ImportedStrategy imported = import_text(
      sparse(R"("mode": "bigbird", "attention": "unidirectional", "num_local_blocks": 8)"));
  EXPECT_EQ(effect(imported, "sparse_attention.mode").status, EffectStatus::honoured);
  EXPECT_NE(effect(imported, "sparse_attention.mode").why.find("2048 positions"),
            std::string::npos);
  EXPECT_NE(effect(imported, "sparse_attention.attention").why.find("DeepSpeed does not read it"),
            std::string::npos);
  EXPECT_EQ(effect(imported, "sparse_attention.num_local_blocks").why,
            "no effect: not a key of mode \"bigbird\"");
  EXPECT_EQ(effect(imported, "sparse_attention.num_sliding_window_blocks").status,
            EffectStatus::defaulted);
  EXPECT_TRUE(imported.refusals.empty());
}

TEST(ImportSparse, RefusesByName) {
  ModelConfig gpt2;
  gpt2.layers = 1;
  gpt2.hidden = 8;
  gpt2.heads = 1;
  gpt2.vocab = 8;
  gpt2.complete();
  ImportContext decoder = four_ranks();
  decoder.model = &gpt2;
  EXPECT_NE(rejection(sparse(R"("mode": "bigbird")"), decoder)
                .find("strategy.sparse_attention.attention: \"bidirectional\" would let a decoder "
                      "see the tokens that it predicts"),
            std::string::npos);
  const auto refused = [](const std::string& keys, const std::string& what,
                          const std::string& own = "") {
    const std::string message = rejection(sparse(keys, own));
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  refused(R"("mode": "sparse")", "strategy.sparse_attention.mode: \"sparse\" is not one of dense");
  refused(R"("block": 8)", "strategy.sparse_attention.block: 8 is not at least 16");
  refused(R"("block": 24)", "strategy.sparse_attention.block: 24 is not a multiple of 16");
  refused(R"("attention": "causal")", "is not one of bidirectional, unidirectional");
  refused(R"("num_global_blocks": 3)",
          "strategy.sparse_attention.num_local_blocks: 4 is no multiple");
  refused(R"("mode": "variable", "local_window_blocks": [4, 0])",
          "strategy.sparse_attention.local_window_blocks: 0 is not a number of blocks");
  refused(R"("mode": "bslongformer", "global_block_indices": [-1])",
          "strategy.sparse_attention.global_block_indices: -1 is not a number of blocks");
  refused(R"("mode": "layout")", "strategy.x-zerolab.block_layout: mode \"layout\" needs its rows");
  refused(R"("mode": "layout", "attention": "unidirectional")",
          "strategy.x-zerolab.block_layout: row 1 has no block up to the diagonal",
          R"("block_layout": ["##", ".."])");
  refused(R"("mode": "fixed")", "strategy.x-zerolab.block_layout: is of mode \"layout\"",
          R"("block_layout": ["#"])");
  EXPECT_NE(rejection(with(R"("x-zerolab": {"block_layout": ["#"]})"))
                .find("strategy.x-zerolab.block_layout: needs \"sparse_attention\""),
            std::string::npos);
}

}  // namespace
}  // namespace zl
