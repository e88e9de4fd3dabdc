#include "simulator/cluster/fitted_numbers.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace zl::sim {

// Ranges: products and memory as public benchmarks of frameworks have them (MAMF, Liger, cuDNN's
// norms; products on Hopper from what PyTorch's issue 100850 measured on); the host from 1 us (C++)
// to 150 us (checkpointing in Python); links as nccl-tests.
const std::vector<FittedNumber>& fitted_numbers() {
  static const std::vector<FittedNumber> numbers = {
      {"kernels.gemm", 0.8, 1},
      {"kernels.gemm_on.hopper", 0.73, 1},
      {"kernels.memory", 0.5, 1},
      {"kernels.reduction", 0.3, 1},
      {"kernels.attention.rate", 0.6, 1},
      {"host.op_seconds", 1e-6, 1.5e-4},
      {"host.step_seconds", 1e-4, 0.1},
      {"host.collective_seconds", 1e-6, 2e-3},
      {"host.message_seconds", 1e-6, 5e-3},
      {"communication.intra", 0.5, 1},
      {"communication.inter", 0.3, 1},
      {"communication.adapters", 0.5, 8},
      {"communication.connections", 1, 4},
      {"communication.staged_copies", 1, 20},
      {"communication.collective_seconds", 1e-6, 3e-4},
      {"communication.overlap_loss", 0.02, 1}};
  return numbers;
}

double& number_of(Software& software, std::string_view key) {
  if (key == "kernels.gemm") return software.gemm;
  if (key == "kernels.gemm_on.hopper") {  // as everywhere, where the profile does not say another
    return software.gemm_on.try_emplace(Generation::hopper, software.gemm).first->second;
  }
  if (key == "kernels.memory") return software.memory;
  if (key == "kernels.reduction") return software.kernels.reduction;
  if (key == "kernels.attention.rate") return software.kernels.attention_rate;
  if (key == "host.op_seconds") return software.op_seconds;
  if (key == "host.step_seconds") return software.step_seconds;
  if (key == "host.collective_seconds") return software.kernels.collective_host_seconds;
  if (key == "host.message_seconds") return software.kernels.message_host_seconds;
  if (key == "communication.intra") return software.intra;
  if (key == "communication.inter") return software.inter;
  if (key == "communication.adapters") return software.kernels.adapters;
  if (key == "communication.connections") return software.kernels.connections;
  if (key == "communication.staged_copies") return software.kernels.staged_copies;
  if (key == "communication.collective_seconds") return software.collective_seconds;
  if (key == "communication.overlap_loss") return software.overlap_loss;
  std::vector<std::string> known;
  for (const FittedNumber& each : fitted_numbers()) known.emplace_back(each.key);
  throw Error(ErrorCode::invalid, "software: \"" + std::string(key) +
                                      "\" is no number that is fitted; the nearest is \"" +
                                      nearest(key, known) + "\". Known: " + join(known, ", "));
}

const FittedNumber& range_of(std::string_view key) {
  const auto& all = fitted_numbers();
  const auto found = std::ranges::find_if(all, [&](const auto& each) { return key == each.key; });
  ZL_CHECK(found != all.end(), "no number that is fitted");
  return *found;
}

Software with_numbers_of(Software derived, const Software& base) {
  Software from = base;
  for (const FittedNumber& each : fitted_numbers()) {
    number_of(derived, each.key) = number_of(from, each.key);
  }
  return derived;
}

std::optional<Software> fitted_without(const Software& software, const std::string& group) {
  const auto found = software.left_out.find(group);
  if (found == software.left_out.end()) return {};
  Software without = software;
  for (std::size_t i = 0; i < software.fitted.size(); ++i) {
    number_of(without, software.fitted[i]) = found->second[i];
  }
  return without;
}

}  // namespace zl::sim
