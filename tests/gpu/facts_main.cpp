// gpu_facts: the machine as one JSON object and nothing else, or the reason why there is no GPU and
// exit code 5. `--slug` prints the name of the GPU as the acceptance run names folders.
#include <cctype>
#include <cstring>
#include <iostream>

#include "backends/cuda/device.h"
#include "tests/gpu/facts.h"

namespace {

// "NVIDIA H200" -> "h200", "NVIDIA GeForce RTX 4090" -> "geforce-rtx-4090".
std::string slug(std::string name) {
  if (name.starts_with("NVIDIA ")) name = name.substr(7);
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c))
            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
            : '-';
  }
  return name;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string why = zl::cuda::availability();
  if (!why.empty()) {
    std::cerr << "no usable GPU: " << why << "\n";
    return 5;
  }
  const auto facts = zl::gpu::machine_facts();
  if (argc > 1 && std::strcmp(argv[1], "--slug") == 0) {
    std::cout << slug(facts["device"]["name"].get<std::string>()) << "\n";
  } else {
    std::cout << facts.dump() << "\n";
  }
  return 0;
}
