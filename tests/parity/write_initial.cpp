// zerolab_parity_initial FOLDER: writes the initial weights and the tokens of every parity case as
// FOLDER/<model>.safetensors, the input of generate.py and check_transformers.py.
#include <exception>
#include <filesystem>
#include <iostream>

#include "backends/cpu/world.h"
#include "core/train/initialize.h"
#include "tests/parity/cases.h"

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: zerolab_parity_initial FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const zl::ModelConfig& model : zl::parity::models()) {
    const std::string path = folder / (model.name + ".safetensors");
    zl::cpu::make_world({})->run([&](zl::RankHandle rank) {
      const zl::Strategy strategy = zl::parity::recipe(1, 0, zl::DType::f32);
      const auto session = zl::initialize(
          model, strategy, rank.device, rank.communicator,
          {.sequence_length = zl::parity::kSequence, .seed = zl::parity::kSeed});
      zl::parity::write_initial(session->engine(), model, path);
    });
    std::cout << path << "\n";
  }
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
