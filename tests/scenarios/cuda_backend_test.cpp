#include "scenarios/run/cuda_backend.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scenarios/run/runner.h"

namespace zl {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST(CudaBackend, CatalogueNamesOfGpus) {
  EXPECT_EQ(catalogue_gpu("NVIDIA H200", 140 * kGiB), "h200");
  EXPECT_EQ(catalogue_gpu("NVIDIA H100 80GB HBM3", 79 * kGiB), "h100");
  EXPECT_EQ(catalogue_gpu("NVIDIA A100-SXM4-80GB", 79 * kGiB), "a100-80");
  EXPECT_EQ(catalogue_gpu("NVIDIA A100-PCIE-40GB", 39 * kGiB), "a100-40");
  EXPECT_EQ(catalogue_gpu("NVIDIA B200", 178 * kGiB), "b200");
  EXPECT_EQ(catalogue_gpu("NVIDIA GB200", 185 * kGiB), "gb200");
  EXPECT_EQ(catalogue_gpu("NVIDIA L40S", 45 * kGiB), "l40s");
  EXPECT_EQ(catalogue_gpu("NVIDIA A10G", 22 * kGiB), "a10g");
  EXPECT_EQ(catalogue_gpu("NVIDIA GeForce RTX 4090", 24 * kGiB), "rtx-4090");
  // Cards with other peaks, and words that only look alike.
  EXPECT_EQ(catalogue_gpu("NVIDIA H100 PCIe", 79 * kGiB), "h100-pcie");
  EXPECT_EQ(catalogue_gpu("NVIDIA H100 NVL", 93 * kGiB), "h100-nvl");
  EXPECT_EQ(catalogue_gpu("NVIDIA H200 NVL", 140 * kGiB), "");
  EXPECT_EQ(catalogue_gpu("NVIDIA GH200 480GB", 94 * kGiB), "");
  EXPECT_EQ(catalogue_gpu("NVIDIA GeForce RTX 3090", 24 * kGiB), "");
  EXPECT_EQ(catalogue_gpu("NVIDIA A10", 22 * kGiB), "");
}

TEST(CudaBackend, DescriptionAndRegistryAgree) {
  const Runner runner;
  const Json described = describe_cuda();
  const auto missing = runner.backends().missing();
  const auto found = missing.find("cuda");
  EXPECT_EQ(found == missing.end(), described["why"].is_null());
  if (found == missing.end()) {
    EXPECT_FALSE(described["gpus"].empty());
    EXPECT_GT(cuda_device_properties(1).memory, 0);
    return;
  }
  EXPECT_EQ(found->second, described["why"].get<std::string>());
  EXPECT_TRUE(described["gpus"].empty());
  EXPECT_FALSE(cuda_cluster(1).has_value());
}

}  // namespace
}  // namespace zl
