// Training with block-sparse attention: the same bits under every ZeRO stage, recomputation and
// number of ranks, the books of the recording device, causality, and what far blocks are good for.
#include "tests/engine/mesh_runs.h"

namespace zl::test {
namespace {

constexpr std::int64_t kSequence = 96;  // six blocks of 16

ModelConfig longer(ModelConfig model) {
  model.max_sequence = kSequence;
  return model;
}

SparseAttentionConfig causal(SparseMode mode) {
  SparseAttentionConfig config;
  config.mode = mode;
  config.bidirectional = false;
  return config;
}

SparseAttentionConfig bigbird() {
  SparseAttentionConfig config = causal(SparseMode::bigbird);
  config.num_random_blocks = 1;
  config.different_layout_per_head = true;
  return config;
}

Strategy sparse(Strategy s, SparseAttentionConfig config) {
  s.sparse_attention = std::move(config);
  return s;
}

std::vector<SparseAttentionConfig> layouts() {
  SparseAttentionConfig own = causal(SparseMode::layout);
  own.rows = {"#.....", "##....", "..#...", "#..#..", "....#.", "#.#..#"};
  SparseAttentionConfig patterns = causal(SparseMode::fixed);
  patterns.num_local_blocks = 2;
  patterns.different_layout_per_head = true;
  patterns.num_different_global_patterns = 2;
  SparseAttentionConfig wide = causal(SparseMode::local_sliding);
  wide.block = 48;
  wide.num_sliding_window_blocks = 1;
  return {patterns,
          causal(SparseMode::variable),
          bigbird(),
          causal(SparseMode::bslongformer),
          causal(SparseMode::local_sliding),
          wide,
          own};
}

void expect_stages_agree(const ModelConfig& model, DType dtype, const std::vector<Strategy>& all,
                         std::int64_t count) {
  const Strategy first = sparse(strategy(0, dtype), bigbird());
  const Finished reference = run_cpu(3, model, first, steps(count));
  expect_trained(run_cpu(3, model, first, steps(0)), reference, 0.95, model.name);
  EXPECT_NE(run_cpu(3, model, strategy(0, dtype), steps(count)).result.loss, reference.result.loss);
  for (const Strategy& s : all) {
    expect_same_bits(reference, run_cpu(3, model, sparse(s, bigbird()), steps(count)), s.name);
  }
}

TEST(Sparse, AllStagesGiveTheSameBits) {
  expect_stages_agree(longer(with_dropout(tiny_gpt2())), DType::f32, variants(DType::f32), 3);
  std::vector<Strategy> recomputed;
  for (const int stage : {1, 2, 3}) {
    recomputed.push_back(strategy(stage, DType::bf16));
    recomputed.back().recompute.mode = RecomputeMode::full;
  }
  expect_stages_agree(longer(tiny_llama()), DType::bf16, recomputed, 10);
}

TEST(Sparse, ManyRanksTrainAsOne) {
  for (const SparseAttentionConfig& config : layouts()) {
    Strategy one = sparse(strategy(0), config);
    one.micro_batch = 4;
    const Finished single = run_cpu(1, longer(tiny_gpt2()), one, steps(10));
    expect_learned(single.result.loss, 0.9, name_of(config.mode));
    for (const int ranks : {2, 4}) {
      Strategy s = sparse(strategy(3), config);
      s.micro_batch = 4 / ranks;
      const Finished many = run_cpu(ranks, longer(tiny_gpt2()), s, steps(10));
      for (std::size_t i = 0; i < 10; ++i) {
        // Later, Adam has made much of rounding, more on some processors.
        const double off = i < 4 ? 1e-5 : 1e-4;
        EXPECT_NEAR(many.result.loss[i], single.result.loss[i], off * single.result.loss[i])
            << name_of(config.mode) << ", " << ranks << " ranks, step " << i + 1;
      }
    }
  }
}

// Heads cut over ranks have the layouts of their places among all heads.
TEST(Sparse, HeadsOfATensorGroupKeepTheirLayouts) {
  for (const ModelConfig& model : {longer(tiny_gpt2()), longer(tiny_llama())}) {
    const Strategy s = sparse(strategy(0), bigbird());
    expect_learned(run_mesh(1, model, s, 12).result().loss, 0.97);
    const MeshRun reference = run_mesh(1, model, s, 4);  // later, Adam has made much of rounding
    for (const int ranks : {2, 4}) {
      Strategy cut = s;
      cut.tensor = {.ranks = ranks, .sequence_parallel = true};
      expect_close(reference, run_mesh(ranks, model, cut, 4), 5e-5, model.name);
    }
  }
}

TEST(Sparse, APipelinesStagesHaveTheLayoutsOfTheirLayers) {
  Strategy s = sparse(strategy(1), bigbird());
  s.gradient_accumulation = 4;
  s.separate_tied_gradient = true;
  const MeshRun whole = run_mesh(1, longer(tiny_gpt2()), s, 3);
  expect_learned(whole.result().loss, 0.95);
  s.pipeline.ranks = 2;
  expect_close(whole, run_mesh(2, longer(tiny_gpt2()), s, 3), 1e-5, "two stages");
}

TEST(Sparse, BooksAreThoseOfTheRecordingDevice) {
  for (const SparseAttentionConfig& config : layouts()) {
    for (const auto mode : {RecomputeMode::none, RecomputeMode::full, RecomputeMode::selective}) {
      Strategy s = sparse(strategy(2, DType::bf16), config);
      s.recompute.mode = mode;
      s.recompute.attention = true;
      const ModelConfig model = longer(tiny_llama());
      expect_twins(run_cpu(2, model, s, steps(5)).result, run_sim(2, model, s, steps(5)).result,
                   name_of(config.mode));
    }
  }
}

// Bytes of the tables and FLOPs of attention are those of the blocks.
TEST(Sparse, CostsWhatItsBlocksCost) {
  ModelConfig model = tiny_gpt2();
  model.max_sequence = 2048;
  const auto attention_flops = [](const Trace& trace) {
    double flops = 0;
    for (const TraceEvent& event : trace.events()) {
      const bool is_attention =
          event.type == EventType::op && event.kind == kOpKind<AttentionForward>;
      if (is_attention) flops += event.flops;
    }
    return flops;
  };
  const Finished dense = run_sim(1, model, strategy(0), steps(1));
  const Finished local =
      run_sim(1, model, sparse(strategy(0), causal(SparseMode::local_sliding)), steps(1));
  // 128 blocks: 255 of 8,256, those on the diagonal half full.
  const double pairs = 127 * 256 + 128 * 136, all = 2048.0 * 2049 / 2;
  EXPECT_DOUBLE_EQ(attention_flops(local.trace), attention_flops(dense.trace) * (pairs / all));
  const auto staging = [](const Finished& run) {
    return run.result.peak_device.tag[static_cast<std::size_t>(MemoryTag::staging)];
  };
  EXPECT_GT(staging(local), staging(dense));
  EXPECT_LT(staging(local), staging(dense) + 8 * 3 * 128 + 1024);
}

// The loss of tokens before `t`, with everything from there on changed: not a bit of it moves.
TEST(Sparse, NoTokenSeesALaterOne) {
  const ModelConfig model = longer(tiny_gpt2());
  for (const SparseAttentionConfig& config : layouts()) {
    cpu::make_world({1, 2})->run([&](RankHandle handle) {
      RankContext context(handle.device, handle.communicator);
      Engine engine(context, model, sparse(strategy(0), config), kSequence, 11);
      Batch batch =
          learnable_tokens(model.vocab).batch({.micro_batch = 2, .sequence_length = kSequence});
      for (const std::size_t t : {7u, 16u, 33u, 63u, 80u}) {
        Batch before = batch;
        for (std::size_t i = 0; i < before.targets.size(); ++i) {
          if (i % kSequence >= t) before.targets[i] = -1;
        }
        Batch changed = before;
        for (std::size_t i = 0; i < changed.tokens.size(); ++i) {
          if (i % kSequence >= t) changed.tokens[i] = (changed.tokens[i] + 5) % 61;
        }
        const double loss = engine.evaluate(before).mean();
        EXPECT_EQ(engine.evaluate(changed).mean(), loss) << name_of(config.mode) << ", token " << t;
        changed.tokens[t - 1] = (changed.tokens[t - 1] + 5) % 61;
        EXPECT_NE(engine.evaluate(changed).mean(), loss) << name_of(config.mode) << ", token " << t;
      }
    });
  }
}

TEST(Sparse, IsRefusedByName) {
  const auto message = [](const ModelConfig& model, const Strategy& s) -> std::string {
    try {
      run_cpu(1, model, s, steps(1));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(tiny_gpt2(), sparse(strategy(0), causal(SparseMode::fixed)))
                .find("sparse_attention.block: 16 does not divide the sequence length 24"),
            std::string::npos);
  SparseAttentionConfig leaks = bigbird();
  leaks.bidirectional = true;
  EXPECT_NE(message(longer(tiny_gpt2()), sparse(strategy(0), leaks))
                .find("sparse_attention.attention: \"bidirectional\""),
            std::string::npos);
  EXPECT_NE(message(longer(tiny_qwen3()), sparse(strategy(0), causal(SparseMode::fixed)))
                .find("tiny qwen3 has a sliding window of its own"),
            std::string::npos);
}

// Text in which a word of the first block decides what follows a question two, or more, blocks
// later: noise, one of eight topics near the beginning, questions at 64 and 112, whose answer is
// the topic. Only the answers count. Between two of them lie more tokens than a window reaches.
class FarRecall final : public DataSource {
 public:
  static constexpr std::int32_t kTopics = 8, kNoise = 16, kQuestion = kTopics + kNoise;
  static constexpr std::int64_t kLength = 128;

  Batch batch(const BatchRequest& request) const override {
    Batch batch;
    for (std::int64_t i = 0; i < request.micro_batch; ++i) {
      std::mt19937 random(
          static_cast<unsigned>(1000 * request.step + request.first_sample() + i + 1));
      const auto topic = static_cast<std::int32_t>(random() % kTopics);
      const auto place = static_cast<std::int64_t>(random() % 16);
      for (std::int64_t p = 0; p < kLength; ++p) {
        const bool asks = p == 64 || p == 112;
        const auto noise = static_cast<std::int32_t>(kTopics + random() % kNoise);
        batch.tokens.push_back(p == place ? topic : asks ? kQuestion : noise);
        batch.targets.push_back(asks ? topic : -1);
      }
    }
    return batch;
  }
};

std::vector<double> losses_of(const SparseAttentionConfig& config) {
  ModelConfig model = tiny_gpt2();
  model.layers = 1;
  model.hidden = 32;
  model.ffn = 64;
  model.vocab = FarRecall::kQuestion + 1;
  model.max_sequence = FarRecall::kLength;
  model.complete();
  Strategy s = sparse(strategy(0), config);
  s.micro_batch = 16;
  s.optimizer.weight_decay = 0;
  s.optimizer.lr = 3e-3;  // at 1e-2 some processors' roundings end on plateaus, .2 to .5
  ProgramOptions options = steps(180);
  options.sequence_length = FarRecall::kLength;
  std::vector<double> loss;
  cpu::make_world({1, 2})->run([&](RankHandle handle) {
    loss = run_rank(handle, model, s, FarRecall(), options).result.loss;
  });
  return loss;
}

TEST(Sparse, FarBlocksLetTheModelLearnWhatAWindowCannot) {
  const auto last_ten = [](const SparseAttentionConfig& config) {
    const std::vector<double> loss = losses_of(config);
    return std::accumulate(loss.end() - 10, loss.end(), 0.0) / 10;
  };
  const double chance = std::log(8.0), dense = last_ten({});
  const double window = last_ten(causal(SparseMode::local_sliding));
  const double longformer = last_ten(causal(SparseMode::bslongformer));
  const double random = last_ten(bigbird());
  RecordProperty("chance", std::to_string(chance));
  RecordProperty("dense", std::to_string(dense));
  RecordProperty("local_sliding", std::to_string(window));
  RecordProperty("bslongformer", std::to_string(longformer));
  RecordProperty("bigbird", std::to_string(random));
  EXPECT_GT(window, 0.95 * chance);
  EXPECT_LT(dense, 0.1 * chance);
  EXPECT_LT(longformer, 0.1 * chance);
  EXPECT_LT(random, 0.1 * chance);
}

}  // namespace
}  // namespace zl::test
