// gpu_acceptance PART [OPTIONS]: one part of the acceptance run, or `facts`: the machine as one
// JSON object and nothing else (`facts --slug`: the name of the GPU as folders have it).
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <iostream>

#include "backends/cuda/availability.h"
#include "tests/gpu/facts.h"
#include "tests/gpu/parts.h"

namespace zl::gpu {
namespace {

struct Part {
  const char* name;
  void (*run)(Report&, const Options&);
  bool takes_all_gpus;
};
constexpr Part kParts[] = {
    {"conformance", run_conformance, true}, {"equality", run_equality, false},
    {"memory", run_memory, false},          {"throughput", run_throughput, false},
    {"kernels", run_kernels, false},        {"calibration", run_calibration, false},
    {"offload", run_offload, false}};

// Ranks would spread over the GPUs of a larger machine: other sums, other books. Before CUDA
// starts.
void use_one_gpu() {
  const char* given = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string visible = given == nullptr ? "0" : given;
  setenv("CUDA_VISIBLE_DEVICES", visible.substr(0, visible.find(',')).c_str(), 1);
}

// "NVIDIA H200" -> "h200", "NVIDIA GeForce RTX 4090" -> "geforce-rtx-4090".
std::string slug(std::string name) {
  if (name.starts_with("NVIDIA ")) name = name.substr(7);
  for (char& c : name) {
    const auto byte = static_cast<unsigned char>(c);
    c = std::isalnum(byte) ? static_cast<char>(std::tolower(byte)) : '-';
  }
  return name;
}

int print_facts(bool as_slug) {
  const std::string why = cuda::availability();
  if (!why.empty()) {
    std::cerr << "no usable GPU: " << why << "\n";
    return kSkipped;
  }
  const Json facts = machine_facts();
  std::cout << (as_slug ? slug(facts.at("device").at("name")) : facts.dump()) << "\n";
  return 0;
}

int run(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  for (const Part& part : kParts) {
    if (name == part.name && !part.takes_all_gpus) use_one_gpu();
  }
  testing::InitGoogleTest(&argc, argv);  // takes its own options out, and asks for the GPUs
  if (name == "facts") return print_facts(argc > 2 && std::string(argv[2]) == "--slug");
  for (const Part& part : kParts) {
    if (name == part.name) return run_part(argc - 1, argv + 1, name, part.run);
  }
  std::cerr << "usage: gpu_acceptance facts [--slug], or PART [OPTIONS], the part being";
  for (const Part& part : kParts) std::cerr << " " << part.name;
  std::cerr << "\n";
  return 2;
}

}  // namespace
}  // namespace zl::gpu

int main(int argc, char** argv) { return zl::gpu::run(argc, argv); }
