// `zerolab train --save`: the file holds the weights that the run ended with, however they were
// spread over ranks, and what a checkpoint has.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/checkpoint/safetensors.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

SafetensorsFile saved(const Home& home, const std::string& name,
                      std::vector<std::string> arguments) {
  const std::string path = home.path(name + ".safetensors");
  arguments.insert(arguments.begin(), {"train", data_file("tiny.json"), "--no-db"});
  arguments.insert(arguments.end(), {"--save", path});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, 0) << output.err;
  return read_safetensors(path);
}

void expect_same(const SafetensorsFile& a, const SafetensorsFile& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const NamedTensor& tensor : a.tensors) {
    const NamedTensor& other = b.at(tensor.name);
    ASSERT_EQ(tensor.shape, other.shape) << tensor.name;
    EXPECT_EQ(std::memcmp(tensor.bytes.data(), other.bytes.data(), tensor.bytes.size()), 0)
        << tensor.name;
  }
}

TEST(Save, HoldsEveryWeightOfTheLastStep) {
  const Home home;
  const SafetensorsFile sharded = saved(home, "sharded", {"--strategy", "zero-3"});
  EXPECT_EQ(sharded.metadata.at("steps"), "3");
  std::size_t elements = 0;
  for (const NamedTensor& tensor : sharded.tensors) {
    EXPECT_EQ(tensor.dtype, DType::f32);
    elements += tensor.bytes.size() / sizeof(float);
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << tensor.name;
  }
  EXPECT_EQ(elements, 120'576u);  // gpt2-tiny
  expect_same(sharded, saved(home, "whole", {"--strategy", "zero-0"}));
  // Another step, other weights.
  const SafetensorsFile earlier = saved(home, "earlier", {"--strategy", "zero-3", "--steps", "2"});
  EXPECT_NE(std::memcmp(sharded.at("embedding.token").bytes.data(),
                        earlier.at("embedding.token").bytes.data(),
                        earlier.at("embedding.token").bytes.size()),
            0);
}

std::string file_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What is saved is what a run that is resumed goes on with.
TEST(Save, HoldsWhatACheckpointOfTheSameStepHolds) {
  const Home home;
  const std::vector<std::string> one{"--strategy", "zero-0", "--ranks", "1"};
  const SafetensorsFile weights = saved(home, "direct", one);
  const std::string folder = home.path("checkpoints");
  for (const char* steps : {"2", "3"}) {  // the second run resumes the first
    std::vector<std::string> arguments{"run",     data_file("tiny.json"),
                                       "--no-db", "--backend",
                                       "cpu",     "--checkpoint",
                                       folder,    "--steps",
                                       steps,     "--resume"};
    arguments.insert(arguments.end(), one.begin(), one.end());
    const Output output = zerolab(home, arguments);
    ASSERT_EQ(output.code, 0) << output.err;
  }
  const SafetensorsFile checkpoint =
      read_safetensors(folder + "/zero-0/step-00000003/rank-0-of-1.safetensors");
  for (const NamedTensor& tensor : weights.tensors) {
    const NamedTensor& kept = checkpoint.at("weights." + tensor.name);
    ASSERT_EQ(tensor.bytes.size(), kept.bytes.size()) << tensor.name;
    EXPECT_EQ(std::memcmp(tensor.bytes.data(), kept.bytes.data(), tensor.bytes.size()), 0)
        << tensor.name;
  }
}

// A run that was killed over its end, and started again: what it did not save any more is saved.
TEST(Save, OfARunWhoseStepsAreAllDone) {
  for (const std::vector<std::string>& judged :
       {std::vector<std::string>{}, {"--eval-data", data_file("text.txt")}}) {
    const Home home;
    const std::string out = home.path("saved.safetensors");
    std::vector<std::string> words{"train",
                                   data_file("tiny.json"),
                                   "--no-db",
                                   "--strategy",
                                   "zero-1",
                                   "--ranks",
                                   "2",
                                   "--steps",
                                   "2",
                                   "--checkpoint",
                                   home.path("kept"),
                                   "--resume",
                                   "--save",
                                   out};
    words.insert(words.end(), judged.begin(), judged.end());
    ASSERT_EQ(zerolab(home, words).code, 0);
    const std::string whole = file_of(out);
    std::filesystem::remove(out);
    const Output again = zerolab(home, words);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_CONTAINS(again.err, "all 2 steps are done already");
    EXPECT_EQ(file_of(out), whole);
  }
}

// A resumed run whose evaluations are worse leaves what was saved; where nothing was, it saves.
TEST(Save, KeepsTheBestOfBeforeTheRunWasResumed) {
  const Home home;
  const std::string out = home.path("best.safetensors");
  const auto train = [&](const char* steps) {
    const Output output = zerolab(home, {"train",
                                         data_file("tiny.json"),
                                         "--no-db",
                                         "--strategy",
                                         "zero-0",
                                         "--ranks",
                                         "1",
                                         "--steps",
                                         steps,
                                         "--lr",
                                         "10",
                                         "--eval-data",
                                         data_file("text.txt"),
                                         "--eval-every",
                                         "1",
                                         "--checkpoint",
                                         home.path("checkpoints"),
                                         "--resume",
                                         "--save",
                                         out});
    EXPECT_EQ(output.code, 0) << output.err;
    return output.err;
  };
  const auto saved_after = [&] { return read_safetensors(out).metadata.at("steps"); };
  train("1");
  EXPECT_EQ(saved_after(), "0");  // such a rate spoils the model at once
  const std::string left = train("2");
  EXPECT_CONTAINS(left, "after step 0, before the run was resumed; " + out + " stays as it is");
  EXPECT_EQ(left.find("wrote"), std::string::npos) << left;
  EXPECT_EQ(saved_after(), "0");
  std::filesystem::remove(out);
  EXPECT_CONTAINS(train("3"), out + " was not there and gets the weights after the last step");
  EXPECT_EQ(saved_after(), "3");
}

// An encoder that tells the labels of texts: names go into the folder, and come out of it.
TEST(Save, NamesTheLabelsOfTheData) {
  const Home home;
  const std::string model = home.path("model"), out = home.path("out");
  std::filesystem::copy(std::string(ZL_SOURCE_DIR) + "/tests/golden/models/zoo/bert_seqcls", model);
  std::ofstream vocab(model + "/vocab.txt");
  vocab << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nking\nlord\n";
  vocab.close();
  std::ofstream(home.path("both.jsonl")) << R"({"text": "king lord", "label": "old"})"
                                         << "\n"
                                         << R"({"text": "lord", "label": "new"})"
                                         << "\n";
  std::ofstream(home.path("one.jsonl")) << R"({"text": "king", "label": "old"})"
                                        << "\n";
  const auto train = [&](const std::string& from, const std::string& data, const std::string& to) {
    const Output output = zerolab(home, {"train",
                                         "--model",
                                         from,
                                         "--task",
                                         "classify",
                                         "--data",
                                         home.path(data),
                                         "--eval-data",
                                         home.path("one.jsonl"),
                                         "--strategy",
                                         "zero-0",
                                         "--ranks",
                                         "1",
                                         "--micro-batch",
                                         "1",
                                         "--sequence-length",
                                         "8",
                                         "--steps",
                                         "1",
                                         "--backend",
                                         "cpu",
                                         "--no-db",
                                         "--save",
                                         to});
    EXPECT_EQ(output.code, 0) << output.err;
    const auto config = nlohmann::json::parse(file_of(to + "/config.json"));
    EXPECT_EQ(config["id2label"],
              nlohmann::json::parse(R"({"0": "new", "1": "old", "2": "LABEL_2"})"));
    EXPECT_EQ(config["label2id"], nlohmann::json::parse(R"({"new": 0, "old": 1, "LABEL_2": 2})"));
    EXPECT_NE(output.out.find("\n  new  "), std::string::npos) << output.out;
    EXPECT_NE(output.out.find("\n  old  "), std::string::npos) << output.out;
  };
  train(model, "both.jsonl", out);
  train(out, "one.jsonl", home.path("again"));  // by itself, "old" would be label 0
}

}  // namespace
}  // namespace zl::cli_test
