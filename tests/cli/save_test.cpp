// `zerolab train --save`: the file holds the weights that the run ended with, however they were
// spread over ranks, and what a checkpoint has.
#include <cmath>
#include <cstring>

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

}  // namespace
}  // namespace zl::cli_test
