// `zerolab train --save`: the file holds the weights that the run ended with, whichever way it was
// split or interrupted.
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

// A run that goes on from a checkpoint of another saves what one run would have.
TEST(Save, AfterAResumeIsTheSame) {
  const Home home;
  const std::vector<std::string> strategy{"--strategy", "zero-2"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), strategy.begin(), strategy.end());
    return more;
  };
  const std::string folder = home.path("run");
  saved(home, "first", with({"--steps", "2", "--checkpoint", folder}));
  expect_same(saved(home, "resumed", with({"--checkpoint", folder, "--resume"})),
              saved(home, "direct", strategy));
}

}  // namespace
}  // namespace zl::cli_test
