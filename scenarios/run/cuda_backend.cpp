#include "scenarios/run/cuda_backend.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "backends/cpu/device.h"
#include "core/ops/op.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/clusters.h"
#include "scenarios/run/measure.h"

#ifdef ZL_WITH_CUDA
#include "backends/cuda/availability.h"
#include "backends/cuda/cudnn_attention.h"
#include "backends/cuda/world.h"
#else
namespace zl::cuda {
struct GpuDescription {
  std::string name;
  std::int64_t memory = 0;
  int multiprocessors = 0, capability = 0;
};
struct SoftwareDescription {
  std::string driver, runtime, cublaslt, nccl, attention;
};
static std::string availability() {
  return "this build has no CUDA backend: CMake found no nvcc or was told ZEROLAB_CUDA=OFF; "
         "install the CUDA 13 toolkit and build again, or use --backend cpu or sim";
}
static std::vector<GpuDescription> describe_gpus() { return {}; }
static std::string driver_version() { return "none"; }
static std::string describe_attention() { return ""; }
static SoftwareDescription describe_software() { return {}; }
template <class HostOps>
std::unique_ptr<World> make_world(const WorldOptions&, const HostOps&) {
  return nullptr;
}
}  // namespace zl::cuda
#endif

namespace zl {
namespace {

// Whether `word` stands in `text` on its own: "H200" is in "NVIDIA H200" and not in "GH200".
bool has_word(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == std::string::npos) return false;
  const auto is_part = [&](std::size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
  };
  return !(at > 0 && is_part(at - 1)) && !is_part(at + word.size());
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

int gpus_used(int ranks) {
  return static_cast<int>(cuda::describe_gpus().size()) >= ranks ? ranks : 1;
}

double cuda_peak_flops(int ranks, DType dtype) {
  const std::optional<sim::ClusterSpec> gpus = cuda_cluster(ranks);
  return gpus ? cluster_peak_flops(*gpus, dtype) : 0;
}

Accelerator describe_accelerator() {
  const auto gpus = cuda::describe_gpus();
  if (gpus.empty()) return {};
  const std::string attention = cuda::describe_attention();
  return {gpus.front().name, "CUDA " + cuda::driver_version() +
                                 ", attention: " + attention.substr(0, attention.find(" ("))};
}

// Of a catalogue's name: "H100-PCIE" H100 and PCIE, "A100-80" A100, whose memory is told by bytes.
std::vector<std::string> words_of(const std::string& name) {
  constexpr std::size_t kMemoryDigits = 3;
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase_if(words, [](const std::string& word) {
    return word.size() <= kMemoryDigits && word.find_first_not_of("0123456789") == word.npos;
  });
  return words;
}

}  // namespace

void add_cuda(BackendRegistry& registry) {
  registry.add(
      "cuda", [](const WorldOptions& options) { return cuda::make_world(options, cpu::run_op); },
      [] { return std::string(cuda::availability()); },
      {.joins_launches = true,
       .cluster = "local-cuda",
       .peak_flops = cuda_peak_flops,
       .device = cuda_device_properties,
       .accelerator = describe_accelerator});
}

std::string catalogue_gpu(const std::string& device_name, std::int64_t memory) {
  const std::string name = upper(device_name);
  const bool has_variants = !has_word(name, "A100");
  std::string best;
  std::int64_t smallest = 0;
  for (const std::string& each : catalog_names("clusters")) {
    const std::vector<std::string> words = words_of(upper(each));
    const auto names = [&](const std::string& word) { return has_word(name, word); };
    const auto is_named = [&](const std::string& word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (!std::all_of(words.begin(), words.end(), names)) continue;
    const bool other_card =
        (names("PCIE") && !is_named("PCIE")) || (names("NVL") && !is_named("NVL"));
    if (has_variants && other_card) continue;
    const std::int64_t difference = std::abs(load_cluster(each).device.memory - memory);
    if (best.empty() || difference < smallest) {
      best = each;
      smallest = difference;
    }
  }
  return best;
}

std::optional<sim::ClusterSpec> cuda_cluster(int ranks) {
  const auto gpus = cuda::describe_gpus();
  if (gpus.empty()) return std::nullopt;
  const std::string name = catalogue_gpu(gpus.front().name, gpus.front().memory);
  if (name.empty()) return std::nullopt;
  return sim::with_devices(load_cluster(name), gpus_used(ranks));
}

DeviceProperties cuda_device_properties(int ranks) {
  DeviceProperties properties;
  const auto gpus = cuda::describe_gpus();
  if (gpus.empty()) return properties;
  const int sharing = ranks / gpus_used(ranks);
  properties.name = gpus.front().name;
  properties.memory = gpus.front().memory / sharing;
#ifdef ZL_WITH_CUDA
  properties.workspace = cuda::kWorkspace;
#endif
  return properties;
}

Json describe_cuda() {
  Json gpus = Json::array();
  for (const cuda::GpuDescription& gpu : cuda::describe_gpus()) {
    gpus.push_back({{"name", gpu.name},
                    {"memory_bytes", gpu.memory},
                    {"multiprocessors", gpu.multiprocessors},
                    {"compute_capability", std::to_string(gpu.capability / 10) + "." +
                                               std::to_string(gpu.capability % 10)}});
  }
  const std::string why = cuda::availability();
  const cuda::SoftwareDescription software = cuda::describe_software();
  const auto text = [](const std::string& each) { return each.empty() ? Json() : Json(each); };
  return {{"gpus", gpus},
          {"driver_cuda", text(software.driver)},
          {"runtime", text(software.runtime)},
          {"cublaslt", text(software.cublaslt)},
          {"nccl", text(software.nccl)},
          {"attention", text(software.attention)},
          {"why", text(why)}};
}

}  // namespace zl
