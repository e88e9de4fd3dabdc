// A model's way through the program: trained, saved as a folder, loaded, trained on, and made to
// speak; and what is said where it cannot.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

std::string saved_model(const Home& home, const std::string& name,
                        std::vector<std::string> arguments = {}) {
  std::string folder = home.path(name);
  arguments.insert(arguments.begin(), {"train", data_file("tiny.json"), "--no-db"});
  arguments.insert(arguments.end(), {"--save", folder});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, 0) << output.err;
  return folder;
}

TEST(ModelFolder, IsTrainedOnWhereItEnded) {
  const Home home;
  const std::string folder = saved_model(home, "model", {"--strategy", "zero-3"});
  EXPECT_TRUE(std::filesystem::exists(folder + "/config.json"));
  const auto loss = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", data_file("tiny.json"), "--no-db", "--steps", "1", "-o",
                               "json", "--ranks", "1"});
    const Output output = zerolab(home, more);
    EXPECT_EQ(output.code, 0) << output.err;
    return nlohmann::json::parse(output.out)["results"][0]["loss"][0].get<double>();
  };
  const double fresh = loss({"--strategy", "zero-0"});
  const double trained = loss({"--strategy", "zero-0", "--weights", folder});
  EXPECT_LT(trained, fresh - 0.01);
  EXPECT_EQ(loss({"--strategy", "zero-2", "--weights", folder}), trained);
}

TEST(Generate, SaysTheSameAtEveryCallAndOneTextPerPrompt) {
  const Home home;
  const std::string folder = saved_model(home, "model");
  const auto texts = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", "--model", folder, "--max-tokens", "12", "-o", "json"});
    const Output output = zerolab(home, more);
    EXPECT_EQ(output.code, 0) << output.err;
    return nlohmann::json::parse(output.out);
  };
  const nlohmann::json one = texts({"--prompt", "In the beginning"});
  EXPECT_EQ(one["outputs"][0].size(), 12u);
  EXPECT_EQ(one["prompt_tokens"], 16);
  EXPECT_EQ(texts({"--prompt", "In the beginning"})["outputs"], one["outputs"]);
  EXPECT_EQ(texts({"--prompt", "In the beginning", "--ranks", "2"})["outputs"], one["outputs"]);
  const nlohmann::json two = texts({"--prompt", "And", "--prompt", "In the beginning"});
  EXPECT_EQ(two["outputs"][1], one["outputs"][0]);  // whatever is said beside it
  EXPECT_EQ(two["texts"].size(), 2u);
  const nlohmann::json drawn =
      texts({"--prompt", "In the beginning", "--temperature", "2", "--seed", "1"});
  EXPECT_NE(drawn["outputs"], one["outputs"]);
  EXPECT_NE(texts({"--prompt", "In the beginning", "--temperature", "2", "--seed", "2"})["outputs"],
            drawn["outputs"]);
}

// Whatever part of the model each rank kept.
TEST(Generate, ACheckpointSaysWhatTheSavedModelSays) {
  const Home home;
  const auto outputs = [&](const std::string& model) {
    const Output output = zerolab(home, {"generate", "--model", model, "--prompt", "And God said",
                                         "--max-tokens", "12", "-o", "json"});
    EXPECT_EQ(output.code, 0) << output.err;
    return nlohmann::json::parse(output.out)["outputs"];
  };
  const std::string pipeline = home.file("pp2.json", R"({"gradient_accumulation_steps": 2,
    "x-zerolab": {"parallel": {"pipeline": 2, "schedule": "zb-h1"}}})");
  const std::string tensor = home.file("tp2.json", R"({"zero_optimization": {"stage": 1},
    "x-zerolab": {"parallel": {"tensor": 2, "sequence_parallel": true}}})");
  for (const std::string& strategy : {std::string("zero-3"), std::string("zero-3-offload-nvme"),
                                      std::string("onebit-adam"), pipeline, tensor}) {
    const std::string name = std::filesystem::path(strategy).stem().string();
    const std::string checkpoints = home.path("checkpoints-" + name);
    const std::string folder =
        saved_model(home, name, {"--strategy", strategy, "--checkpoint", checkpoints});
    const nlohmann::json wanted = outputs(folder);
    EXPECT_EQ(outputs(checkpoints), wanted) << strategy;
    EXPECT_EQ(outputs(checkpoints + "/" + name), wanted) << strategy;
    const Output imported =
        zerolab(home, {"import", "checkpoint", checkpoints, "--out", home.path("imported")});
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_EQ(read_file(home.path("imported") + "/model.safetensors"),
              read_file(folder + "/model.safetensors"));
  }
}

TEST(Generate, ADamagedCheckpointIsNamed) {
  const Home home;
  const std::string checkpoints = home.path("checkpoints");
  saved_model(home, "model", {"--strategy", "zero-3", "--checkpoint", checkpoints});
  const std::string file = checkpoints + "/zero-3/step-00000003/rank-1-of-2.safetensors";
  ASSERT_TRUE(std::filesystem::exists(file));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 4);
  const Output output = zerolab(home, {"generate", "--model", checkpoints, "--prompt", "x"});
  EXPECT_EQ(output.code, 3);
  EXPECT_NE(output.err.find(file), std::string::npos) << output.err;
  std::filesystem::create_directories(checkpoints + "/other");
  std::filesystem::copy(checkpoints + "/zero-3", checkpoints + "/other",
                        std::filesystem::copy_options::recursive);
  const Output several = zerolab(home, {"generate", "--model", checkpoints, "--prompt", "x"});
  EXPECT_EQ(several.code, 3);
  EXPECT_NE(several.err.find("several runs"), std::string::npos) << several.err;
}

// A layout that a growing text has none of: said once; the window of local_sliding has one. The
// saved folder knows it as the checkpoints do.
TEST(Generate, SaysThatItAttendsToMoreThanTheModelWasTrainedOn) {
  const Home home;
  const auto said = [&](const std::string& mode) {
    const std::string strategy =
        home.file(mode + ".json", R"({"sparse_attention": {"mode": ")" + mode +
                                      R"(", "attention": "unidirectional",
                                          "num_sliding_window_blocks": 1}})");
    const std::string checkpoints = home.path("checkpoints-" + mode);
    saved_model(home, "model-" + mode,
                {"--strategy", strategy, "--checkpoint", checkpoints, "--ranks", "1",
                 "--sequence-length", "64"});
    std::vector<std::string> all;
    for (const std::string& model : {checkpoints, home.path("model-" + mode)}) {
      const Output output =
          zerolab(home, {"generate", "--model", model, "--prompt", "And", "--max-tokens", "2"});
      EXPECT_EQ(output.code, 0) << output.err;
      all.push_back(output.err);
    }
    EXPECT_EQ(all[0].find("sparse_attention") == std::string::npos,
              all[1].find("sparse_attention") == std::string::npos)
        << all[1];
    return all[1];
  };
  const std::string text = "trained with sparse_attention.mode \"variable\"";
  const std::string dense = said("variable");
  const std::size_t first = dense.find(text);
  ASSERT_NE(first, std::string::npos) << dense;
  EXPECT_EQ(dense.find("sparse_attention", first + text.size()), std::string::npos) << dense;
  const std::string window = said("local_sliding");
  EXPECT_EQ(window.find("sparse_attention"), std::string::npos) << window;
  EXPECT_NE(window.find("trained with, local_sliding"), std::string::npos) << window;
  const Output dense_again =
      zerolab(home, {"train", data_file("tiny.json"), "--no-db", "--steps", "1", "--ranks", "1",
                     "--strategy", "zero-0", "--sequence-length", "64", "--weights",
                     home.path("model-variable")});
  EXPECT_EQ(dense_again.code, 0) << dense_again.err;
  EXPECT_NE(dense_again.err.find("trained with other attention"), std::string::npos)
      << dense_again.err;
}

TEST(Generate, PrintsThePromptAndWhatFollows) {
  const Home home;
  const std::string folder = saved_model(home, "model");
  const Output output = zerolab(
      home, {"generate", "--model", folder, "--prompt", "In the beginning", "--max-tokens", "4"});
  EXPECT_EQ(output.code, 0);
  EXPECT_TRUE(output.out.starts_with("In the beginning")) << output.out;
  EXPECT_NE(output.err.find("tokens/s"), std::string::npos) << output.err;
}

// Memory is predicted to the byte.
TEST(Generate, APredictionHasTheMemoryOfTheRealOne) {
  const Home home;
  const std::string folder = saved_model(home, "model");
  for (const char* ranks : {"1", "2"}) {
    const auto run = [&](const std::string& backend) {
      const Output output = zerolab(
          home, {"generate", "--model", folder, "--prompt", "In the beginning", "--max-tokens", "8",
                 "--ignore-end", "--ranks", ranks, "--backend", backend, "-o", "json"});
      EXPECT_EQ(output.code, 0) << output.err;
      return nlohmann::json::parse(output.out);
    };
    const nlohmann::json real = run("cpu"), predicted = run("sim");
    for (const char* key : {"peak_device_bytes", "kv_cache_bytes", "reserved_bytes", "weight_bytes",
                            "prompt_tokens", "output_tokens", "decoded_tokens"}) {
      EXPECT_EQ(real[key], predicted[key]) << key << ", ranks " << ranks;
    }
    EXPECT_GT(predicted["first_token"]["seconds"], 0);
    EXPECT_GE(predicted["decode"]["high"], predicted["decode"]["seconds"]);
    EXPECT_EQ(predicted["priced_from"], "guess");
    EXPECT_EQ(real["priced_from"], nullptr);
  }
}

// A prompt that the positions do not hold is bad input, of learned positions and of rotary ones
// (which have no end of their own); of what follows it rotary ones only say a word.
TEST(Generate, APromptIsNoLongerThanThePositions) {
  const Home home;
  const auto said = [&](const std::string& folder, std::size_t prompt,
                        const std::string& max_tokens, int code) {
    std::vector<std::string> words = {
        "generate", "--model", folder, "--prompt", "a", "--prompt", std::string(prompt, 'b')};
    if (!max_tokens.empty()) words.insert(words.end(), {"--max-tokens", max_tokens});
    const Output output = zerolab(home, words);
    EXPECT_EQ(output.code, code) << output.err;
    return output.err;
  };
  for (const std::string name : {"llama-tiny", "gpt2-tiny"}) {
    const std::string folder = saved_model(home, name, {"--model", name});
    const std::string refusal = said(folder, 65, "4", 3);
    EXPECT_NE(refusal.find("prompt 2: its 65 tokens are more than the 64 positions"),
              std::string::npos)
        << refusal;
    EXPECT_NE(refusal.find("shorten it"), std::string::npos) << refusal;
    // Where nobody says how many tokens are to follow, as many as there is room for.
    EXPECT_NE(said(folder, 60, "", 0).find("end after 4 tokens, at the 64 positions"),
              std::string::npos);
    EXPECT_EQ(said(folder, 60, "4", 0).find("positions"), std::string::npos);
  }
  EXPECT_NE(said(home.path("llama-tiny"), 61, "4", 0).find("longer than the 64 positions"),
            std::string::npos);
  EXPECT_NE(said(home.path("gpt2-tiny"), 61, "4", 3).find("more than the 64 positions"),
            std::string::npos);
}

// A prediction asks how long it takes, which rotary positions do not limit.
TEST(Generate, APredictionGoesOnBehindRotaryPositions) {
  const Home home;
  const auto said = [&](const std::string& model, const std::string& tokens, int code) {
    const Output output = zerolab(home, {"generate", "--model", model, "--cluster", "h100",
                                         "--prompt-tokens", tokens, "--max-tokens", "4"});
    EXPECT_EQ(output.code, code) << output.err;
    return output.err;
  };
  EXPECT_NE(said("llama-tiny", "65", 0).find("longer than the 64 positions"), std::string::npos);
  EXPECT_EQ(said("llama-tiny", "60", 0).find("positions"), std::string::npos);
  EXPECT_NE(said("gpt2-tiny", "65", 3).find("prompt: its 65 tokens"), std::string::npos);
}

TEST(Generate, APredictionIsForTheClusterOfAFileToo) {
  const Home home;
  const auto predicted = [&](const std::string& cluster) {
    const Output output =
        zerolab(home, {"generate", "--model", "llama-tiny", "--cluster", cluster, "--prompt-tokens",
                       "8", "--max-tokens", "4", "-o", "json"});
    EXPECT_EQ(output.code, 0) << output.err;
    nlohmann::json run = nlohmann::json::parse(output.out, nullptr, false);
    run["cluster"] = nullptr;
    return run;
  };
  const std::string h100 =
      read_file(std::string(ZL_SOURCE_DIR) + "/scenarios/catalog/clusters/h100.json");
  EXPECT_EQ(predicted(home.file("mine.json", h100)), predicted("h100"));
}

// What rope_scaling stretches positions to is what a prompt has.
TEST(Generate, ScaledPositionsTakeLongerPrompts) {
  const Home home;
  const std::string folder = saved_model(home, "model", {"--model", "llama-tiny"});
  nlohmann::json config = nlohmann::json::parse(read_file(folder + "/config.json"));
  const auto code = [&](const nlohmann::json& rope, std::size_t prompt) {
    config.erase("rope_parameters");
    config["rope_scaling"] = rope;
    home.file("model/config.json", config.dump());
    return zerolab(home, {"generate", "--model", folder, "--prompt", std::string(prompt, 'b'),
                          "--max-tokens", "1"})
        .code;
  };
  const nlohmann::json linear = {{"rope_type", "linear"}, {"factor", 2}};
  EXPECT_EQ(code(linear, 128), 0);
  EXPECT_EQ(code(linear, 129), 3);
  nlohmann::json yarn = {{"rope_type", "yarn"}, {"factor", 4}};
  yarn["original_max_position_embeddings"] = 64;
  EXPECT_EQ(code(yarn, 256), 0);
  EXPECT_EQ(code(yarn, 257), 3);
  yarn["original_max_position_embeddings"] = 16;  // positions are already the stretched ones
  EXPECT_EQ(code(yarn, 64), 0);
  EXPECT_EQ(code(yarn, 65), 3);
}

TEST(Generate, WhatCannotBeSaidIsNamed) {
  const Home home;
  const std::string folder = saved_model(home, "model");
  const auto refused = [&](int code, const std::string& said, std::vector<std::string> more) {
    more.insert(more.begin(), "generate");
    const Output output = zerolab(home, more);
    EXPECT_EQ(output.code, code) << output.err;
    EXPECT_NE(output.err.find(said), std::string::npos) << output.err;
  };
  refused(2, "--prompt: give the text", {"--model", folder});
  refused(2, "--prompt: \"\" is no value", {"--model", folder, "--prompt", ""});
  refused(3, "positions", {"--model", folder, "--prompt", "a", "--max-tokens", "100000"});
  refused(3, "temperature: -1", {"--model", folder, "--prompt", "a", "--temperature", "-1"});
  refused(3, "3 does not divide the model's", {"--model", folder, "--prompt", "a", "--ranks", "3"});
  refused(2, "are more than the 1 devices of --cluster h100",
          {"--model", "llama3-8b", "--cluster", "h100", "--prompt-tokens", "8", "--ranks", "2"});
  refused(3, "no-such", {"--model", "no-such", "--prompt", "a"});
  refused(2, "--prompt-tokens: say how long", {"--model", "llama3-8b", "--cluster", "h100"});
  const std::string zoo = std::string(ZL_SOURCE_DIR) + "/tests/golden/models/zoo/gpt2";
  refused(3, "beyond the vocabulary of 48", {"--model", zoo, "--prompt", "a"});
}

}  // namespace
}  // namespace zl::cli_test
