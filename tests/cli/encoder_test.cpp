// An encoder's texts on the command line: which of them judge it, and what is named first where
// more than one thing is wrong.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

namespace fs = std::filesystem;

std::string zoo_copy(const Home& home, const std::string& name) {
  std::string folder = home.path(name);
  fs::copy(std::string(ZL_SOURCE_DIR) + "/tests/golden/models/zoo/" + name, folder);
  return folder;
}

// Of the zoo, with words; its vocabulary has 48.
std::string encoder(const Home& home) {
  std::string folder = zoo_copy(home, "bert_seqcls");
  std::ofstream(folder + "/vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nking\nlord\n";
  return folder;
}

std::vector<std::string> classify(const std::string& model, const std::string& data) {
  return {"train",    "--model",   model, "--task",
          "classify", "--data",    data,  "--strategy",
          "zero-0",   "--ranks",   "1",   "--micro-batch",
          "1",        "--steps",   "1",   "--sequence-length",
          "8",        "--backend", "cpu", "--no-db",
          "-o",       "json"};
}

// Every second text is old: four of eight, evenly spread, are all so, whoever judges.
TEST(EncoderTexts, EvalSamplesAreSpreadOverThem) {
  const Home home;
  std::string lines;
  for (int i = 0; i < 4; ++i) {
    lines += "{\"text\": \"king\", \"label\": \"old\"}\n{\"text\": \"lord\", \"label\": \"new\"}\n";
  }
  const std::string data = home.file("texts.jsonl", lines);
  auto arguments = classify(encoder(home), data);
  arguments.insert(arguments.end(), {"--eval-data", data, "--eval-samples", "4"});
  const Output output = zerolab(home, arguments);
  ASSERT_EQ(output.code, 0) << output.err;
  const auto result = nlohmann::json::parse(output.out)["results"][0];
  EXPECT_EQ(result["evaluation"]["points"][0]["tokens"], 4);
  EXPECT_EQ(result["labels"]["texts"], 4);
  for (const auto& label : result["labels"]["by_label"]) {
    EXPECT_EQ(label["texts"], label["label"] == "old" ? 4 : 0) << label;
  }
}

TEST(EncoderTexts, ALabelHasALetter) {
  const Home home;
  const std::string data = home.file(
      "texts.jsonl",
      "{\"text\": \"king\", \"label\": \"old\"}\n{\"text\": \"lord\", \"label\": \"\"}\n");
  const Output output = zerolab(home, classify(encoder(home), data));
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_CONTAINS(output.err, "texts.jsonl:2: label: is empty");
}

TEST(EncoderTexts, EvalStrideIsOfDecodersOnly) {
  const Home home;
  const std::string data = home.file("texts.jsonl", "{\"text\": \"king\", \"label\": \"old\"}\n");
  auto arguments = classify(encoder(home), data);
  arguments.insert(arguments.end(), {"--eval-data", data, "--eval-stride", "4"});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_CONTAINS(output.err, "run.eval_stride: bert_seqcls is an encoder");
}

// Verses are held out of the testaments: there is what to judge by. They are then missed, or read.
TEST(EncoderTexts, TheTestamentsNeedNoEvalData) {
  const Home home;
  auto arguments = classify(encoder(home), "bible-testaments");
  arguments.insert(arguments.end(), {"--eval-samples", "8", "--eval-every", "1"});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.err.find("nothing to judge the model by"), std::string::npos) << output.err;
  if (output.code != 0) return;  // without the King James Bible
  EXPECT_EQ(nlohmann::json::parse(output.out)["results"][0]["labels"]["texts"], 8);
}

// The tokenizer of bytes has ids beyond its 48, too.
TEST(MissingShard, IsNamedBeforeAWrongVocabulary) {
  const Home home;
  const std::string folder = zoo_copy(home, "llama_gqa_sharded");
  fs::remove(folder + "/model-00002-of-00003.safetensors");
  const std::string text = home.file("a.txt", std::string(4000, 'z'));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train", "--model", folder, "--data", text, "--steps", "1",
                                 "--backend", "cpu", "--ranks", "1", "--strategy", "zero-0",
                                 "--sequence-length", "16", "--no-db"},
        {"evaluate", "--model", folder, "--eval-data", text, "--sequence-length", "16"},
        {"generate", "--model", folder, "--prompt", "z"}}) {
    const Output output = zerolab(home, command);
    EXPECT_EQ(output.code, 3) << output.err;
    EXPECT_CONTAINS(output.err, "the file model-00002-of-00003.safetensors is missing");
  }
}

}  // namespace
}  // namespace zl::cli_test
