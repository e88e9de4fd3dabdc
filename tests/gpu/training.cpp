#include "tests/gpu/training.h"

#include "scenarios/files/clusters.h"
#include "scenarios/run/cuda_backend.h"
#include "tests/gpu/process.h"

namespace zl::gpu {

double flops_per_token(const ModelConfig& model, std::int64_t sequence) {
  return 6.0 * static_cast<double>(model.parameters()) +
         6.0 * static_cast<double>(model.layers * model.attention_width() * sequence);
}

double nominal_bf16_peak(const Json& device) {
  const std::string name = catalogue_gpu(device.at("name"), device.at("memory_bytes"));
  return name.empty() ? 0 : load_cluster(name).device.rate(DType::bf16).peak;
}

Json run_zerolab(const std::string& program, const TrainingShape& shape, const std::string& backend,
                 std::int64_t batch, int steps, double seconds,
                 const std::vector<std::string>& more) {
  std::vector<std::string> command = {program,
                                      "run",
                                      "--model",
                                      shape.model,
                                      "--backend",
                                      backend,
                                      "--strategy",
                                      "zero-0",
                                      "--ranks",
                                      "1",
                                      "--precision",
                                      "bf16",
                                      "--data",
                                      "synthetic",
                                      "--sequence-length",
                                      std::to_string(shape.sequence),
                                      "--micro-batch",
                                      std::to_string(batch),
                                      "--steps",
                                      std::to_string(steps),
                                      "--no-deterministic",
                                      "--no-db",
                                      "-q",
                                      "-o",
                                      "json"};
  command.insert(command.end(), more.begin(), more.end());
  constexpr int kOutOfMemory = 4;  // exit code of an infeasible run
  const std::string text = run_program(command, seconds, {0, kOutOfMemory});
  return Json::parse(text).at("results").at(0);
}

}  // namespace zl::gpu
