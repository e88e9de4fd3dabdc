#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/ops/op.h"
#include "simulator/cluster/find_cluster.h"

namespace zl::sim {
namespace {

const std::string kFolder = std::string(ZL_SOURCE_DIR) + "/scenarios/catalog/clusters/";

ClusterSources catalogue() {
  ClusterSources sources;
  sources.gpus = {"v100",      "v100-ethernet", "a100-40", "a100-80",  "h100",
                  "h100-500w", "h200",          "b200",    "gb200",    "h100-nvl",
                  "h100-pcie", "l40s",          "a10g",    "rtx-4090", "mi300x"};
  sources.text = [](const std::string& gpu) { return read_file(kFolder + gpu + ".json"); };
  return sources;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "no error";
}

std::string parse_message(const std::string& from, const std::string& to) {
  std::string text = read_file(kFolder + "h100.json");
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  return message_of([&] { parse_cluster(text, "h100.json"); });
}

TEST(Cluster, EveryCatalogueFileParsesAndSurvivesARoundTrip) {
  for (const std::string& gpu : catalogue().gpus) {
    const ClusterSpec cluster = find_cluster(gpu, catalogue());
    EXPECT_EQ(cluster.devices, 1);
    EXPECT_EQ(cluster.node_devices, gpu == "v100-ethernet" ? 4 : gpu == "gb200" ? 72 : 8) << gpu;
    EXPECT_GE(cluster.device.memory, std::int64_t{24} << 30);
    EXPECT_GE(cluster.host_memory, cluster.node_devices * std::int64_t{64'000'000'000}) << gpu;
    EXPECT_EQ(device_properties(cluster).workspace, 64 << 20);  // as the CUDA backend asks
    EXPECT_GE(cluster.device.rate(DType::f16).peak, 7e13);
    EXPECT_GE(cluster.device.rate(DType::f16).peak, cluster.device.rate(DType::f32).peak);
    const std::string text = cluster_json(cluster);
    EXPECT_EQ(cluster_json(parse_cluster(text, "again")), text);
  }
  std::size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    files += file.path().extension() == ".json" ? 1u : 0u;
  }
  EXPECT_EQ(files, catalogue().gpus.size());
}

TEST(Cluster, AKeyGivenTwiceIsRefusedWithItsPlace) {
  EXPECT_EQ(parse_message("\"memory_bandwidth\"", "\"name\": \"H1\", \"memory_bandwidth\""),
            "h100.json:10:5: the key \"device.name\" is given twice; remove one");
}

TEST(Cluster, DefaultPrecisionIsTheFastestOfTheDevice) {
  EXPECT_EQ(default_precision(find_cluster("h100", catalogue())), DType::bf16);
  EXPECT_EQ(default_precision(find_cluster("v100", catalogue())), DType::f16);
  EXPECT_EQ(default_precision(uncalibrated_local(4)), DType::f32);
  ClusterSpec plain = find_cluster("h100", catalogue());
  plain.device.rates.fill(plain.device.rate(DType::f32));
  EXPECT_EQ(default_precision(plain), DType::f32);
}

TEST(Cluster, APeakThatNoDeviceHasIsRefused) {
  EXPECT_NE(parse_message("\"bf16\": 9.89e14", "\"bf16\": 1")
                .find("device.peak_flops.bf16: 1 FLOP/s is not at least 1e6"),
            std::string::npos);
}

TEST(Cluster, AGenerationIsOneOfThoseKnown) {
  EXPECT_EQ(
      parse_message("\"generation\": \"hopper\"", "\"generation\": \"hoper\""),
      "h100.json: cluster.device.generation: \"hoper\" is not one of unknown, volta, ampere, ada, "
      "hopper, blackwell, cdna3");
}

TEST(Cluster, VoltaHasNoBf16) {
  const ClusterSpec cluster = find_cluster("v100", catalogue());
  EXPECT_EQ(cluster.device.rate(DType::bf16).peak, cluster.device.rate(DType::f32).peak);
}

TEST(Cluster, CountsBeforeTheGpu) {
  EXPECT_EQ(find_cluster("8xh100", catalogue()).devices, 8);
  const ClusterSpec large = find_cluster("1024xa100-80", catalogue());
  EXPECT_EQ(large.devices, 1024);
  EXPECT_EQ(large.name, "1024xa100-80");
  EXPECT_EQ(large.node_devices, 8);
  EXPECT_EQ(device_properties(large).memory, std::int64_t{80} << 30);
}

TEST(Cluster, TheRanksOfAFullNodeShareItsHostMemory) {
  const auto share = [](const char* name) {
    return device_properties(find_cluster(name, catalogue())).host_memory;
  };
  EXPECT_EQ(share("h100"), 2'000'000'000'000);
  EXPECT_EQ(share("3xh100"), 2'000'000'000'000 / 3);
  EXPECT_EQ(share("1024xh100"), 2'000'000'000'000 / 8);
  EXPECT_EQ(share("12xv100-ethernet"), (std::int64_t{448} << 30) / 4);
  ClusterSpec machine = with_devices(uncalibrated_local(2), 4);
  EXPECT_EQ(device_properties(machine).host_memory, 0);
  machine.host_memory = 1000;
  EXPECT_EQ(device_properties(machine).host_memory, 250);
  EXPECT_TRUE(device_properties(machine).memory_is_host);
  EXPECT_FALSE(device_properties(find_cluster("h100", catalogue())).memory_is_host);
}

TEST(Cluster, NamesThatMeanNothing) {
  const auto error = [](const std::string& name) {
    return message_of([&] { find_cluster(name, catalogue()); });
  };
  EXPECT_NE(error("8xh10").find("nearest name is \"h100\""), std::string::npos);
  EXPECT_NE(error("8xH100").find("nearest name is \"h100\""), std::string::npos);
  EXPECT_NE(error("8xa100").find("nearest name is \"a100-"), std::string::npos);
  EXPECT_NE(error("8xlocal").find("use --cluster local --ranks 8"), std::string::npos);
  EXPECT_NE(error("lokal").find("nearest name is \"local\""), std::string::npos);
  EXPECT_NE(error("0xh100").find("\"0xh100\": the number of GPUs"), std::string::npos);
  EXPECT_NE(error("xh100").find("number of GPUs"), std::string::npos);
  EXPECT_NE(error("99999999999xh100").find("number of GPUs"), std::string::npos);
  EXPECT_NE(error("-8xh100").find("is not in the catalogue"), std::string::npos);
  EXPECT_NE(error("8x").find("is not in the catalogue"), std::string::npos);
  EXPECT_NE(error("").find("is not in the catalogue"), std::string::npos);
}

TEST(Cluster, LocalIsTheCalibratedFileOrAWideGuess) {
  ClusterSources sources = catalogue();
  const ClusterSpec guess = find_cluster("local", sources);
  EXPECT_TRUE(guess.compute_is_host);
  EXPECT_GE(guess.shared_cores, 1);
  EXPECT_GE(guess.spread[0], 0.5);
  ClusterSpec measured = uncalibrated_local(7);
  measured.calibration = Calibration{{RankCoefficients{}}, 0.5, 0.1, 3};
  sources.local = cluster_json(measured);
  EXPECT_EQ(find_cluster("local", sources).shared_cores, 7);
  EXPECT_EQ(find_cluster("local", sources).calibration->runs, 3);
}

TEST(Cluster, DevicesAreAtLeastOne) {
  EXPECT_EQ(with_devices(uncalibrated_local(2), 4).devices, 4);
  EXPECT_NE(message_of([] { with_devices(uncalibrated_local(2), 0); }).find("at least 1"),
            std::string::npos);
}

TEST(ClusterFile, ErrorsNameTheKeyAndTheFix) {
  EXPECT_NE(parse_message("\"memory_bandwidth\"", "\"memory_bandwith\"")
                .find("cluster.device.memory_bandwidth: is missing"),
            std::string::npos);
  EXPECT_NE(
      parse_message("\"overlap_loss\"", "\"overlap_los\"")
          .find("cluster.overlap_los: unknown key; the nearest known key is \"overlap_loss\""),
      std::string::npos);
  EXPECT_NE(parse_message("\"node_devices\": 8", "\"node_devices\": 0")
                .find("cluster.node_devices: 0 is not at least 1"),
            std::string::npos);
  EXPECT_NE(parse_message("\"efficiency\": 0.9", "\"efficiency\": 9").find("not between 0 and 1"),
            std::string::npos);
  EXPECT_NE(parse_message("\"hop_seconds\": 5e-6", "\"hop_seconds\": [1]")
                .find("links.host.hop_seconds: [1]"),
            std::string::npos);
  EXPECT_NE(parse_message("\"80GiB\"", "\"80 elephants\"").find("device.memory"),
            std::string::npos);
  EXPECT_NE(parse_message("\"bandwidth\": 4.5e11", "\"bandwidth\": -1").find("-1"),
            std::string::npos);
  EXPECT_NE(parse_message("\"schema\": 1", "\"schema\": 2").find("cluster.schema"),
            std::string::npos);
  EXPECT_NE(parse_message("{", "{{").find("h100.json:1:2: malformed JSON"), std::string::npos);
}

TEST(ClusterFile, CalibrationRoundTripsByName) {
  ClusterSpec cluster = uncalibrated_local(2);
  RankCoefficients entry;
  entry.ranks = 4;
  entry.ops[kOpKind<Gemm>][static_cast<std::size_t>(DType::bf16)] = {1e-6, 2e-12, 3e-10, 0.1, 7};
  entry.ops[kOpKind<SquaredSum>][static_cast<std::size_t>(DType::f64)] = {2e-6, 0, 1e-10, 0.2, 3};
  entry.collectives[2][static_cast<std::size_t>(DType::f32)] = {5e-6, 1e-6, 4e-10, 0.3, 9};
  entry.large_ops[kOpKind<Gemm>][static_cast<std::size_t>(DType::bf16)] = {0,   3e-12, 4e-10,
                                                                           0.2, 5,     2e6};
  entry.forward_ops[kOpKind<Gemm>][static_cast<std::size_t>(DType::bf16)] = {2e-6, 4e-12, 0, 0.1,
                                                                             6};
  entry.large_forward_ops[kOpKind<Gemm>][static_cast<std::size_t>(DType::bf16)] = {0,   5e-12, 0,
                                                                                   0.2, 4,     3e6};
  entry.gradient_ops[kOpKind<Gemm>][static_cast<std::size_t>(DType::bf16)] = {3e-6, 4e-12, 0, 0.1,
                                                                              6};
  entry.large_gradient_ops[kOpKind<Gemm>][static_cast<std::size_t>(DType::bf16)] = {
      0, 6e-12, 0, 0.2, 4, 3e6};
  entry.large_collectives[2][static_cast<std::size_t>(DType::f32)] = {5e-6, 0, 9e-10, 0.3, 9, 4e6};
  entry.host_ops[kOpKind<Axpy>][static_cast<std::size_t>(DType::f32)] = {3e-6, 0, 2e-10, 0.1, 5};
  entry.routes[1] = {1e-7, 0, 1e-10, 0.1, 2};
  entry.routes[2] = {1e-4, 1e-5, 1e-9, 0.3, 4};
  entry.large_routes[2] = {1e-3, 0, 2e-10, 0.1, 3, 1e6};
  entry.seconds_per_event = 3e-7;
  entry.seconds_per_step = 2e-4;
  entry.seconds_per_wait = 7e-6;
  cluster.calibration = Calibration{{entry}, 0.85, 0.07, 6, 0.05, true, 0.35};
  const std::string text = cluster_json(cluster);
  const ClusterSpec again = parse_cluster(text, "local.json");
  EXPECT_EQ(cluster_json(again), text);
  EXPECT_EQ(again.calibration, cluster.calibration);
  std::string older = text;
  for (const std::string key :
       {"host_ops", "large_ops", "forward_ops", "large_forward_ops", "gradient_ops",
        "large_gradient_ops", "large_collectives", "seconds_per_wait", "quiet"}) {
    older.replace(older.find('"' + key + '"'), 1, "\"x-");
  }
  older.insert(older.find("\"by_ranks\""), "\"drift\": 0.02, ");
  EXPECT_EQ(parse_cluster(older, "local.json").calibration->runs, 6);
  std::string renamed = text;
  renamed.replace(renamed.find("\"gemm\",\n"), 8, "\"gem\",\n");
  EXPECT_NE(message_of([&] {
              parse_cluster(renamed, "local.json");
            }).find("\"gem\" is unknown; the nearest is \"gemm\""),
            std::string::npos);
}

}  // namespace
}  // namespace zl::sim
