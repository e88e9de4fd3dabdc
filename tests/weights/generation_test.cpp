// What models of the zoo say: logits and greedy text are those of transformers, and a cache changes
// nothing that was said without it.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>

#include "core/inference/generator.h"
#include "core/inference/sampler.h"
#include "core/model/sparse_attention.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/import_gguf.h"
#include "scenarios/run/generation_run.h"
#include "tests/temp_folder.h"
#include "tests/weights/zoo.h"

namespace zl::test {
namespace {

void with_generator(const std::string& name, const GeneratorOptions& options,
                    const std::function<void(Generator&)>& use) {
  const ModelConfig model = zoo_model(name);
  const ModelWeights weights(zoo(name), model);
  cpu::make_world({1, 2})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    Generator generator(context, model, options, InitialWeights(1, &weights));
    use(generator);
  });
}

std::vector<std::int32_t> row(const nlohmann::json& golden, std::size_t index) {
  return golden["input_ids"][index].get<std::vector<std::int32_t>>();
}

std::int32_t best(const std::vector<float>& logits) {
  return next_token(logits, {}, {.temperature = 0}, 0, 0);
}

class Generation : public testing::TestWithParam<std::string> {};

// Of the golden file: the first six logits at the tokens 0, 1, T/2 and T-1 of each sequence, and
// the sum of all magnitudes.
TEST_P(Generation, LogitsAreThoseOfTransformers) {
  const nlohmann::json golden = zoo_golden(GetParam());
  const nlohmann::json& expected = golden["logits[b,t,0:6] t in 0,1,T/2,T-1"];
  with_generator(GetParam(), {.sequences = 2}, [&](Generator& generator) {
    double magnitudes = 0;
    for (int sequence = 0; sequence < 2; ++sequence) {
      const std::vector<std::int32_t> tokens = row(golden, static_cast<std::size_t>(sequence));
      const auto logits = generator.extend_all(sequence, tokens);
      const std::size_t length = tokens.size();
      const std::size_t places[] = {0, 1, length / 2, length - 1};
      for (std::size_t t = 0; t < 4; ++t) {
        for (std::size_t i = 0; i < 6; ++i) {
          EXPECT_NEAR(logits[places[t]][i],
                      expected[static_cast<std::size_t>(sequence)][t][i].get<double>(), 1.5e-5);
        }
      }
      for (const auto& all : logits) {
        for (const float value : all) magnitudes += std::fabs(value);
      }
    }
    const double expected_sum = golden["logits_abs_sum"].get<double>();
    EXPECT_NEAR(magnitudes, expected_sum, 2e-6 * expected_sum);
  });
}

TEST_P(Generation, GreedyTextIsThatOfTransformers) {
  const nlohmann::json golden = zoo_golden(GetParam());
  std::vector<std::int32_t> tokens = row(golden, 0);
  tokens.resize(6);
  with_generator(GetParam(), {}, [&](Generator& generator) {
    std::vector<std::int32_t> said;
    std::vector<std::int32_t> next = tokens;
    for (int i = 0; i < 10; ++i) {
      const Generator::Extension extension{0, next};
      said.push_back(best(generator.extend({&extension, 1}).front()));
      next = {said.back()};
    }
    EXPECT_EQ(said, golden["greedy10_from_first6"].get<std::vector<std::int32_t>>());
  });
}

// Token by token, in pieces, beside others of other lengths: as in one forward.
TEST_P(Generation, ACacheChangesNothing) {
  const nlohmann::json golden = zoo_golden(GetParam());
  // So few that positions which stretch with the length do not (Generator).
  std::vector<std::int32_t> first = row(golden, 0), second = row(golden, 1);
  first.resize(12);
  second.resize(8);
  with_generator(GetParam(), {.sequences = 2}, [&](Generator& generator) {
    const auto whole = generator.extend_all(0, first), other = generator.extend_all(1, second);
    generator.clear(0);
    generator.clear(1);
    const auto near = [](const std::vector<float>& a, const std::vector<float>& b) {
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-5);
    };
    const std::span all(first);
    const Generator::Extension prompt[] = {{0, all.first(7)}, {1, std::span(second).first(3)}};
    const auto prompted = generator.extend(prompt);
    near(prompted[0], whole[6]);
    near(prompted[1], other[2]);
    for (std::size_t t = 7; t < 12; ++t) {
      const Generator::Extension next[] = {{1, std::span(second).subspan(t - 4, 1)},
                                           {0, all.subspan(t, 1)}};
      const auto logits = generator.extend(next);
      near(logits[0], other[t - 4]);
      near(logits[1], whole[t]);
    }
    EXPECT_EQ(generator.length(0), 12);
    EXPECT_EQ(generator.length(1), 8);
  });
}

INSTANTIATE_TEST_SUITE_P(, Generation, testing::ValuesIn(zoo_decoders()), zoo_name);

// The configuration that an import writes is read as the model that the file is of.
TEST(ImportedGguf, SaysWhatItsHuggingFaceModelSays) {
  const TempFolder folder;
  const std::string golden = std::string(ZL_SOURCE_DIR) + "/tests/golden/models/gguf";
  const std::string imported = (folder / "imported").string();
  import_gguf(golden + "/model.gguf", imported, DType::f32, false);
  const auto logits_of = [](const std::string& path) {
    const ModelConfig model = load_model(path);
    const ModelWeights weights(path, model);
    EXPECT_TRUE(weights.missing().empty());
    std::vector<std::vector<float>> logits;
    cpu::make_world({1, 1})->run([&](RankHandle handle) {
      RankContext context(handle.device, handle.communicator);
      Generator generator(context, model, {}, InitialWeights(1, &weights));
      std::vector<std::int32_t> tokens(
          24);  // beyond the positions before its rotation is stretched
      std::iota(tokens.begin(), tokens.end(), 3);
      logits = generator.extend_all(0, tokens);
    });
    return logits;
  };
  EXPECT_EQ(logits_of(imported), logits_of(golden));
  ModelConfig wanted = load_model(golden), got = load_model(imported);
  wanted.name = got.name = "";
  EXPECT_EQ(model_to_json(got), model_to_json(wanted));
}

TEST(Generator, CacheIsCountedUnderItsOwnTag) {
  const ModelConfig model = zoo_model("llama_gqa");
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator);
    const Generator generator(context, model, {.sequences = 3, .capacity = 16}, 1);
    const std::int64_t bytes =
        3 * 16 * KeyValueCache::bytes_per_token(generator.model(), DType::f32);
    EXPECT_EQ(context.ledger().at_peak(
                  MemorySpace::device)[static_cast<std::size_t>(MemoryTag::kv_cache)],
              bytes);
  });
}

// The window of local_sliding is a text's, too: the losses of the layout that it was trained with.
TEST(Generator, AttendsByTheWindowOfBlocksThatItWasTrainedWith) {
  constexpr std::int64_t kLength = 64;
  SparseAttentionConfig sparse{.mode = SparseMode::local_sliding, .bidirectional = false};
  ModelConfig model = zoo_model("llama_gqa");
  model.max_sequence = kLength;
  const ModelWeights weights(zoo("llama_gqa"), model);
  const InitialWeights initial(1, &weights);
  std::vector<std::int32_t> tokens(kLength);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>((i * i + 3 * i) % static_cast<std::size_t>(model.vocab));
  }
  cpu::make_world({1, 1})->run([&](RankHandle handle) {
    const auto trained = [&](const SparseAttentionConfig& config) {
      RankContext context(handle.device, handle.communicator);
      Strategy s = zoo_strategy(1);
      s.sparse_attention = config;
      Engine engine(context, model, s, kLength, initial);
      Batch batch{tokens, {tokens.begin() + 1, tokens.end()}};
      batch.targets.push_back(-1);
      return engine.evaluate(batch).mean();
    };
    const auto loss_of = [&](const std::vector<std::vector<float>>& logits) {
      double sum = 0;
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        double all = 0;
        for (const float each : logits[i]) all += std::exp(static_cast<double>(each));
        sum += std::log(all) - logits[i][static_cast<std::size_t>(tokens[i + 1])];
      }
      return sum / static_cast<double>(tokens.size() - 1);
    };
    const double wanted = trained(sparse);
    EXPECT_GT(std::abs(wanted - trained({})), 1e-3);
    RankContext context(handle.device, handle.communicator);
    Generator generator(context, model, {.blocks = block_window(sparse), .capacity = kLength},
                        initial);
    EXPECT_NEAR(loss_of(generator.extend_all(0, tokens)), wanted, 2e-6);
    generator.clear(0);
    std::vector<std::vector<float>> logits = generator.extend_all(0, std::span(tokens).first(21));
    for (std::size_t i = 21; i < tokens.size(); ++i) {
      const Generator::Extension next{0, std::span(tokens).subspan(i, 1)};
      logits.push_back(generator.extend({&next, 1}).front());
    }
    EXPECT_NEAR(loss_of(logits), wanted, 2e-6);
  });
  sparse.mode = SparseMode::fixed;
  EXPECT_EQ(block_window(sparse).block, 0);
}

// A layer with a window keeps no more than it sees.
TEST(Generator, AWindowIsAllThatItsLayerKeeps) {
  const auto kept = [](const std::string& name) {
    const ModelConfig model = zoo_model(name);
    std::int64_t bytes = 0;
    cpu::make_world({1, 1})->run([&](RankHandle handle) {
      RankContext context(handle.device, handle.communicator);
      const Generator generator(context, model, {.sequences = 3, .capacity = 24}, 1);
      bytes = context.ledger().at_peak(
          MemorySpace::device)[static_cast<std::size_t>(MemoryTag::kv_cache)];
    });
    EXPECT_EQ(bytes, 3 * KeyValueCache::bytes(model, 24, DType::f32));
    return bytes / 3 / (KeyValueCache::bytes_per_token(model, DType::f32) / model.layers);
  };
  EXPECT_EQ(kept("mistral_window4"), 4 + 4);
  EXPECT_EQ(kept("qwen2_window4_from_layer1"), 24 + 4);
  EXPECT_EQ(kept("llama_gqa"), 24 + 24);
}

// Whatever pieces a text comes in, and however often the window has turned.
TEST(Generator, AWindowIsThatOfTheWholeText) {
  for (const std::string name : {"mistral_window4", "qwen2_window4_from_layer1"}) {
    std::vector<std::int32_t> tokens = row(zoo_golden(name), 0);
    tokens.resize(23);
    with_generator(name, {}, [&](Generator& generator) {
      const auto whole = generator.extend_all(0, tokens);
      for (const std::vector<std::size_t>& pieces : {std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 2},
                                                     {4, 1, 1, 1, 1, 9, 1, 5},
                                                     {3, 1, 18, 1}}) {
        generator.clear(0);
        std::size_t done = 0;
        for (const std::size_t piece : pieces) {
          const auto logits = generator.extend_all(0, std::span(tokens).subspan(done, piece));
          for (std::size_t i = 0; i < piece; ++i) {
            for (std::size_t v = 0; v < logits[i].size(); ++v) {
              ASSERT_NEAR(logits[i][v], whole[done + i][v], 1e-5) << name << " token " << done + i;
            }
          }
          done += piece;
        }
        EXPECT_EQ(done, tokens.size());
      }
    });
  }
}

GenerationRequest of_two_prompts(const std::string& name) {
  GenerationRequest request{.model = zoo_model(name), .prompts = {{1, 2, 3, 4, 5, 6, 7}, {8, 9}}};
  request.weights = std::make_shared<const ModelWeights>(zoo(name), request.model);
  request.options.max_tokens = 9;
  request.options.sampling.temperature = 0;
  return request;
}

// Memory of a generation through a window is foreseen to the byte.
TEST(Generator, AWindowIsRecordedAsItIsExecuted) {
  for (const std::string name : {"mistral_window4", "qwen2_window4_from_layer1", "llama_gqa"}) {
    const GenerationRequest request = of_two_prompts(name);
    const GenerationRun real = run_generation(*cpu::make_world({1, 1}), request);
    const GenerationRun predicted = predict_generation(request, load_cluster("h200"));
    EXPECT_EQ(predicted.peak.tag, real.peak.tag) << name;
    EXPECT_EQ(predicted.reserved, real.reserved) << name;
    EXPECT_EQ(real.peak.tag[static_cast<std::size_t>(MemoryTag::kv_cache)],
              2 * KeyValueCache::bytes(request.model, 16, DType::f32));
  }
}

// Over ranks that have a part of every layer each, and of the vocabulary, or the same kv head on
// several.
TEST(Generator, RanksThatHaveAModelTogetherSayWhatOneSays) {
  std::vector<std::pair<GenerationRequest, int>> cases;
  for (const char* name : {"gpt2", "qwen3", "gemma", "phi3", "mistral_window4"}) {
    cases.emplace_back(of_two_prompts(name), 2);
  }
  cases.emplace_back(of_two_prompts("llama_gqa"), 4);
  cases.emplace_back(of_two_prompts("llama_gqa"), 2);
  cases.back().first.model.vocab = 47;  // not in equal parts
  cases.back().first.weights = nullptr;
  for (auto& [request, ranks] : cases) {
    const GenerationRun one = run_generation(*cpu::make_world({1, 1}), request);
    std::vector<std::int32_t> heard;
    request.options.on_token = [&](int, std::int32_t token) { heard.push_back(token); };
    request.ranks = ranks;
    const GenerationRun cut = run_generation(*cpu::make_world({ranks, 1}), request);
    EXPECT_EQ(cut.generated.outputs, one.generated.outputs) << request.model.name;
    EXPECT_EQ(heard.size(), 18u) << request.model.name;
    EXPECT_LT(cut.weight_bytes, one.weight_bytes) << request.model.name;
    const GenerationRun predicted = predict_generation(request, load_cluster("8xh100"));
    EXPECT_EQ(predicted.peak.tag, cut.peak.tag) << request.model.name;
    EXPECT_EQ(predicted.reserved, cut.reserved) << request.model.name;
  }
}

// All after the same step, whichever rank hears of it when.
TEST(Generator, RanksThatAreToEndDoSoTogether) {
  GenerationRequest request = of_two_prompts("llama_gqa");
  std::atomic<bool> cancel = false;
  request.options.max_tokens = 1000;
  request.options.cancel = &cancel;
  request.options.on_token = [&](int, std::int32_t) { cancel = true; };
  const GenerationRun run = run_generation(*cpu::make_world({2, 1}), request);
  EXPECT_EQ(run.generated.output_tokens, 4);
}

TEST(Generator, WhatDoesNotFitIsNamed) {
  with_generator("gpt2", {.capacity = 8}, [](Generator& generator) {
    const std::vector<std::int32_t> tokens(9, 1);
    const Generator::Extension extension{0, tokens};
    try {
      generator.extend({&extension, 1});
      ADD_FAILURE() << "9 tokens fit 8";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      EXPECT_NE(std::string(error.what()).find("9 tokens after 0 do not fit its cache of 8"),
                std::string::npos);
    }
  });
  EXPECT_THROW(with_generator("gpt2", {.capacity = 4096}, [](Generator&) {}), Error);
}

}  // namespace
}  // namespace zl::test
