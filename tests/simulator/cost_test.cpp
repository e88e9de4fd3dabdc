#include <gtest/gtest.h>

#include <cmath>

#include "core/ops/op.h"
#include "simulator/cost/collective.h"
#include "simulator/cost/gemm.h"
#include "simulator/cost/price.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::plain_cluster;
using test::TraceBuilder;

TraceEvent op(std::uint8_t kind, double flops, std::int64_t bytes) {
  TraceEvent event;
  event.kind = kind;
  event.flops = flops;
  event.bytes_read = bytes;
  return event;
}

TEST(Roofline, TheLargerOfComputeMemoryAndKernelFloor) {
  ClusterSpec cluster = plain_cluster();
  EXPECT_EQ(op_time(op(kOpKind<Axpy>, 3e9, 1000), cluster).picoseconds, 3'000'000'000);
  EXPECT_EQ(op_time(op(kOpKind<Axpy>, 3e9, 5'000'000'000), cluster).picoseconds, 5'000'000'000);
  cluster.device.kernel_seconds = 2e-6;
  EXPECT_EQ(op_time(op(kOpKind<Axpy>, 1, 1), cluster).picoseconds, 2'000'000);
}

TEST(Roofline, RanksThatShareCoresGetEqualParts) {
  ClusterSpec cluster = plain_cluster(4);
  cluster.shared_cores = 2;
  EXPECT_EQ(op_time(op(kOpKind<Axpy>, 3e9, 0), cluster).picoseconds, 12'000'000'000);
}

TEST(Roofline, SpreadBelongsToTheClass) {
  ClusterSpec cluster = plain_cluster();
  cluster.spread = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  TraceEvent gemm = op(kOpKind<Gemm>, 2, 2);
  gemm.m = gemm.n = gemm.k = 1;
  EXPECT_EQ(op_time(gemm, cluster).spread, 0.1);
  EXPECT_EQ(op_time(op(kOpKind<AttentionBackward>, 1, 1), cluster).spread, 0.2);
  EXPECT_EQ(op_time(op(kOpKind<NormForward>, 1, 1), cluster).spread, 0.3);
}

TEST(Gemm, WithoutMultiprocessorsOnlyTheRateCounts) {
  EXPECT_DOUBLE_EQ(gemm_seconds(10, 20, 30, {1e6, 0.5}, 0), 2.0 * 10 * 20 * 30 / 5e5);
}

// Generation in fp32 took a third of what tiles of 64 rows, one of which is used, would (an H200).
TEST(Gemm, AVectorTimesAMatrixFillsNoTile) {
  const ComputeRate rate{6.7e13, 0.9};
  const double alone = 2.0 * 576 * 1536 / (rate.peak * rate.efficiency);
  EXPECT_DOUBLE_EQ(gemm_seconds(1, 1536, 576, rate, 132), alone);
  EXPECT_DOUBLE_EQ(gemm_seconds(1536, 1, 576, rate, 132), alone);
  EXPECT_GT(gemm_seconds(2, 1536, 576, rate, 132), 10 * alone);
}

TEST(Gemm, OneFullWaveByHand) {
  // 8 x 16 tiles of 256 x 128 on 128 multiprocessors: one wave at the full rate, k + 170 deep.
  const double exact = 2.0 * 2048 * 2048 * (1000 + 170) / 1e14;
  EXPECT_NEAR(gemm_seconds(2048, 2048, 1000, {1e14, 1.0}, 128), exact, exact * 1e-12);
}

TEST(Gemm, OneMoreTileStartsAnotherWave) {
  const ComputeRate rate{1e14, 1.0};
  const double full = gemm_seconds(256 * 32, 128 * 32, 4096, rate, 128);
  const double more = gemm_seconds(256 * 32, 128 * 32 + 1, 4096, rate, 128);
  EXPECT_GT(more, full * 1.05);
  // Never slower to do less.
  EXPECT_LE(gemm_seconds(256 * 32, 128 * 32 - 1, 4096, rate, 128), full);
}

TEST(Gemm, TimeGrowsWithEveryDimension) {
  const ComputeRate rate{3.12e14, 0.8};
  for (std::int64_t size = 64; size <= 8192; size *= 2) {
    const double time = gemm_seconds(size, size, size, rate, 108);
    EXPECT_LE(time, gemm_seconds(size + 1, size, size, rate, 108));
    EXPECT_LE(time, gemm_seconds(size, size + 1, size, rate, 108));
    EXPECT_LT(time, gemm_seconds(size, size, size + 1, rate, 108));
    EXPECT_GE(time, 2.0 * std::pow(static_cast<double>(size), 3) / (rate.peak * rate.efficiency));
  }
}

// Kernels on an H200, 989 TFLOP/s (results/measured/h200/e-kernels.json): 222 forward, 173
// backward.
TEST(Attention, OverBlocksRunsAtTheRateOfTheCoresOwnKernelsOnHopper) {
  ClusterSpec cluster = plain_cluster();
  DeviceSpec& device = cluster.device;
  device.rates[static_cast<std::size_t>(DType::bf16)] = {989e12, 0.8};
  device.multiprocessors = 132;
  device.attention_forward = device.attention_backward = 0.7;
  const auto rate = [&](std::uint8_t kind, std::int32_t purpose, Generation generation) {
    device.generation = generation;
    TraceEvent event = op(kind, 1e12, 0);
    event.dtype = DType::bf16;
    event.m = 1 << 20, event.n = 4096, event.k = 64;
    event.purpose = static_cast<decltype(event.purpose)>(purpose);
    return 1e12 / (static_cast<double>(op_time(event, cluster).picoseconds) * 1e-12);
  };
  const std::uint8_t forward = kOpKind<AttentionForward>, backward = kOpKind<AttentionBackward>;
  EXPECT_NEAR(rate(forward, 1, Generation::hopper), 222e12, 3e12);
  EXPECT_NEAR(rate(backward, 1, Generation::hopper), 173e12, 3e12);
  EXPECT_GT(rate(forward, 0, Generation::hopper), 300e12);
  EXPECT_EQ(rate(forward, 1, Generation::ampere), rate(forward, 0, Generation::ampere));
}

TEST(Attention, SmallHeadsAndFewBlocksAreSlower) {
  ClusterSpec cluster = plain_cluster();
  const auto time = [&](std::int64_t heads, std::int64_t head_size) {
    TraceEvent event = op(kOpKind<AttentionForward>, 1e9, 0);
    event.m = heads, event.n = 4096, event.k = head_size;
    return op_time(event, cluster).picoseconds;
  };
  EXPECT_EQ(time(1, 64), 1'000'000'000);  // no multiprocessors: the rate alone
  cluster.device.multiprocessors = 100;
  EXPECT_GT(time(64, 64), time(64, 128));
  EXPECT_GT(time(4, 128), time(64, 128));
  // 2048 blocks of 128 rows, head 128: 1 / (128/184 * 2048/2248).
  EXPECT_NEAR(static_cast<double>(time(64, 128)), 1e9 * 184 / 128 * 2248 / 2048, 1);
}

double collective_time(const ClusterSpec& cluster, CollectiveKind kind, std::int64_t bytes,
                       int ranks) {
  TraceBuilder builder;
  return collective_seconds(builder.collective(kMain, kind, bytes, ranks), cluster);
}

TEST(Collective, RingInOneNodeIsAlphaBeta) {
  const ClusterSpec cluster = plain_cluster(4);
  const double beta = 1e6 / 1e9;
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::reduce_scatter, 1'000'000, 4),
                   3e-6 + beta);
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::all_gather, 1'000'000, 4), 3e-6 + beta);
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::broadcast, 1'000'000, 4), 3e-6 + beta);
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::all_reduce, 1'000'000, 4), 6e-6 + beta);
}

TEST(Collective, BetweenNodesTheAdaptersOfANodeAreShared) {
  const ClusterSpec cluster = plain_cluster(16);  // 2 nodes, 8 adapters of 0.1 GB/s each
  // 15 hops, 2 of them between nodes.
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::all_gather, 8'000'000, 16),
                   13e-6 + 2e-5 + 8e6 / 0.8e9);
  // Nine ranks: the second node brings one adapter only.
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::all_gather, 8'000'000, 9),
                   6e-6 + 2e-5 + 8e6 / 0.1e9);
  EXPECT_DOUBLE_EQ(ring_rate(place(8, 1, 8), cluster), 1e9);
}

TEST(Collective, AllToAllLeavesTheNodeOverItsOwnAdapters) {
  // In one node: each of 3 chunks over the rank's own link.
  EXPECT_DOUBLE_EQ(collective_time(plain_cluster(4), CollectiveKind::all_to_all, 3'000'000, 4),
                   3e-6 + 3e6 / 1e9);
  // Two nodes of 8: 8 of a rank's 15 chunks leave the node, each rank through its own adapter.
  EXPECT_DOUBLE_EQ(collective_time(plain_cluster(16), CollectiveKind::all_to_all, 15'000'000, 16),
                   13e-6 + 2e-5 + 8e6 / 0.1e9);
}

TEST(Collective, ALinkLimitIsAFloorOfWireBytes) {
  ClusterSpec cluster = plain_cluster(4);
  cluster.shared_cores = 2;
  TraceBuilder builder;
  const TraceEvent& event = builder.collective(kMain, CollectiveKind::all_gather, 1'000'000, 4);
  EXPECT_EQ(op_time(event, cluster).link_picoseconds, 0);
  const ClusterSpec slow = with_link_bandwidth(cluster, 5e8);
  EXPECT_EQ(op_time(event, slow).link_picoseconds, 2'000'000'000);  // 1 MB at 0.5 GB/s
  EXPECT_EQ(op_time(event, slow).picoseconds, op_time(event, cluster).picoseconds);
}

TEST(Collective, ALinkLimitOfACluster) {
  // Two nodes of 8: the adapters of a node share it; one node: every device's link.
  const ClusterSpec two = with_link_bandwidth(plain_cluster(16), 4e8);
  EXPECT_DOUBLE_EQ(two.inter.rate(), 5e7);
  EXPECT_DOUBLE_EQ(two.intra.rate(), plain_cluster(16).intra.rate());
  EXPECT_DOUBLE_EQ(with_link_bandwidth(plain_cluster(4), 4e8).intra.rate(), 4e8);
}

TEST(Collective, SmallAllReducesBetweenNodesUseTrees) {
  const ClusterSpec cluster = plain_cluster(1024);
  // 2 * (7 hops + log2(128) hops between nodes).
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::all_reduce, 0, 1024),
                   2 * (7e-6 + 7e-5));
}

TEST(Collective, ProtocolsTradeLatencyForBandwidth) {
  ClusterSpec cluster = plain_cluster(2);
  cluster.intra.hop_seconds = {1e-6, 10e-6, 100e-6};
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::all_gather, 1000, 2),
                   1e-6 + 1000 / 0.4e9);
  EXPECT_DOUBLE_EQ(collective_time(cluster, CollectiveKind::all_gather, 100'000'000, 2),
                   100e-6 + 1e8 / 1e9);
}

TEST(Collective, OneRankCopies) {
  EXPECT_DOUBLE_EQ(collective_time(plain_cluster(), CollectiveKind::all_reduce, 1'000'000, 1),
                   2e6 / 1e12);
}

TEST(Copy, LatencyPlusBytesOverTheHostLink) {
  TraceBuilder builder;
  EXPECT_EQ(op_time(builder.copy(kMain, 1'000'000), plain_cluster()).picoseconds, 1'002'000'000);
}

TEST(Fitted, LinesReplaceTheModelAndScaleWithTheRanks) {
  ClusterSpec cluster = plain_cluster(4);
  cluster.shared_cores = 2;
  RankCoefficients entry;
  entry.ranks = 4;
  entry.ops[kOpKind<Axpy>][static_cast<std::size_t>(DType::f32)] = {1e-6, 1e-12, 1e-9, 0.07, 10};
  cluster.calibration = Calibration{{entry}, 0, 0, 1};
  const TraceEvent event = op(kOpKind<Axpy>, 1e6, 1000);
  EXPECT_EQ(op_time(event, cluster).picoseconds, 3'000'000);
  EXPECT_EQ(op_time(event, cluster).spread, 0.07);
  EXPECT_EQ(op_time(event, with_devices(cluster, 8)).picoseconds, 6'000'000);
  EXPECT_EQ(op_time(event, with_devices(cluster, 8)).spread, 0.14);
  // Not fitted: the model.
  EXPECT_EQ(op_time(op(kOpKind<Fill>, 1e9, 0), cluster).picoseconds, 4'000'000'000);
}

TEST(Fitted, ProductsWithATransposeHaveLinesOfTheirOwn) {
  ClusterSpec cluster = plain_cluster();
  constexpr auto kType = static_cast<std::size_t>(DType::f32);
  cluster.calibration = Calibration{{RankCoefficients{}}, 0, 0, 1};
  RankCoefficients& entry = cluster.calibration->by_ranks[0];
  entry.ops[kOpKind<Gemm>][kType] = {1e-6, 0, 0, 0, 9};
  const auto price_of = [&](std::uint8_t kind, Variant variant) {
    TraceEvent event = op(kind, 1e6, 1000);
    event.purpose = static_cast<std::uint8_t>(variant);
    return op_time(event, cluster).picoseconds;
  };
  EXPECT_EQ(price_of(kOpKind<Gemm>, Variant::transposed_b), 1'000'000) << "where none was fitted";
  EXPECT_EQ(price_of(kOpKind<Gemm>, Variant::transposed_a), 1'000'000) << "where none was fitted";
  entry.forward_ops[kOpKind<Gemm>][kType] = {3e-6, 0, 0, 0, 9};
  entry.gradient_ops[kOpKind<Gemm>][kType] = {5e-6, 0, 0, 0, 9};
  EXPECT_EQ(price_of(kOpKind<Gemm>, Variant::none), 1'000'000);
  EXPECT_EQ(price_of(kOpKind<Gemm>, Variant::transposed_b), 3'000'000);
  EXPECT_EQ(price_of(kOpKind<Gemm>, Variant::transposed_a), 5'000'000);
  entry.large_gradient_ops[kOpKind<Gemm>][kType] = {7e-6, 0, 0, 0, 9, 500};
  EXPECT_EQ(price_of(kOpKind<Gemm>, Variant::transposed_a), 7'000'000);
  entry.ops[kOpKind<AttentionForward>][kType] = {9e-6, 0, 0, 0, 9};
  EXPECT_EQ(price_of(kOpKind<AttentionForward>, Variant::sparse), 9'000'000);
}

// A gather into a place of its own copies the rank's own part, too; one in place does not, and a
// rank alone then has nothing to do.
TEST(Fitted, CollectivesPayForWhatTheyMove) {
  const auto price_of = [](CollectiveKind kind, int ranks, std::int64_t in_place) {
    ClusterSpec cluster = plain_cluster(ranks);
    RankCoefficients entry;
    entry.ranks = ranks;
    for (auto& row : entry.collectives) row.fill({0, 0, 1e-9, 0, 9});
    cluster.calibration = Calibration{{entry}, 0, 0, 1};
    TraceEvent event;
    event.type = EventType::collective;
    event.kind = static_cast<std::uint8_t>(kind);
    event.k = ranks;
    event.id = in_place;
    const bool gathers = kind == CollectiveKind::all_gather;
    event.bytes_read = gathers ? 1000 : 1000 * ranks;
    event.bytes_written = gathers ? 1000 * ranks : 1000;
    return op_time(event, cluster).picoseconds / 1'000'000;
  };
  EXPECT_EQ(price_of(CollectiveKind::all_gather, 4, 0), 8);
  EXPECT_EQ(price_of(CollectiveKind::all_gather, 4, 1000), 6);
  EXPECT_EQ(price_of(CollectiveKind::all_gather, 1, 0), 2);
  EXPECT_EQ(price_of(CollectiveKind::all_gather, 1, 1000), 0);
  EXPECT_EQ(price_of(CollectiveKind::reduce_scatter, 4, 0), 5);
  EXPECT_EQ(price_of(CollectiveKind::reduce_scatter, 4, 1000), 5) << "it reads its own, too";
  EXPECT_EQ(price_of(CollectiveKind::reduce_scatter, 1, 0), 2);
  EXPECT_EQ(price_of(CollectiveKind::reduce_scatter, 1, 1000), 0);
}

// One thread does on the host's stream what a team does on the device's.
TEST(Fitted, UpdatesOfTheHostsStreamHaveTheirLineOnProcessorsToo) {
  ClusterSpec cluster = plain_cluster();
  cluster.compute_is_host = true;
  cluster.shared_cores = 2;
  constexpr auto kType = static_cast<std::size_t>(DType::f32);
  cluster.calibration = Calibration{{RankCoefficients{}}, 0, 0, 1};
  RankCoefficients& entry = cluster.calibration->by_ranks[0];
  entry.ops[kOpKind<AdamStep>][kType] = {1e-6, 0, 0, 0, 9};
  TraceEvent update = op(kOpKind<AdamStep>, 1e6, 1000);
  update.stream = static_cast<std::uint8_t>(StreamId::host);
  EXPECT_EQ(op_time(update, cluster).picoseconds, 1'000'000) << "where none was fitted";
  entry.host_ops[kOpKind<AdamStep>][kType] = {2e-6, 0, 0, 0, 9};
  EXPECT_EQ(op_time(update, cluster).picoseconds, 2'000'000);
}

// As torchtitan's list of what is kept: every second product, not those of a whole recomputation.
TEST(Roofline, ASoftwareRepeatsAShareOfTheProductsItRecomputes) {
  ClusterSpec cluster = plain_cluster();
  TraceEvent gemm = op(kOpKind<Gemm>, 1e15, 1000), axpy = op(kOpKind<Axpy>, 1e15, 1000);
  const std::int64_t whole = op_time(gemm, cluster).picoseconds;
  cluster.device.software.products_again = 0.5;
  gemm.scope.phase = Phase::recompute;
  EXPECT_EQ(op_time(gemm, cluster).picoseconds, whole);
  gemm.scope.phase = axpy.scope.phase = Phase::recompute_products;
  EXPECT_NEAR(static_cast<double>(op_time(gemm, cluster).picoseconds),
              0.5 * static_cast<double>(whole), 1);
  EXPECT_EQ(op_time(axpy, cluster).picoseconds, op_time(axpy, plain_cluster()).picoseconds);
}

TEST(Fitted, ALoneRanksCollectivesSayNothingOfLinks) {
  TraceBuilder builder;
  const TraceEvent& event =
      builder.collective(StreamId::communication, CollectiveKind::all_gather, 1'000'000, 2);
  const auto kind = static_cast<std::size_t>(CollectiveKind::all_gather);
  RankCoefficients entry;
  entry.collectives[kind][static_cast<std::size_t>(DType::f32)] = {7e-6, 0, 0, 0, 9};
  for (const auto& [measured, devices, is_fitted] :
       {std::tuple{1, 1, true}, {1, 2, false}, {2, 2, true}, {2, 4, true}}) {
    ClusterSpec cluster = plain_cluster(devices);
    const std::int64_t modelled = op_time(event, cluster).picoseconds;
    entry.ranks = measured;
    cluster.calibration = Calibration{{entry}, 0, 0, 1};
    EXPECT_EQ(op_time(event, cluster).picoseconds, is_fitted ? 7'000'000 : modelled);
    EXPECT_NE(modelled, 7'000'000);
  }
}

TEST(Fitted, LargeTransfersHaveALineOfTheirOwn) {
  ClusterSpec cluster = plain_cluster();
  RankCoefficients entry;
  const auto read = static_cast<std::size_t>(Route::file_to_host);
  entry.routes[read] = {1e-6, 0, 1e-9, 0, 9};
  entry.large_routes[read] = {5e-6, 0, 1e-10, 0, 9, 1000};
  cluster.calibration = Calibration{{entry}, 0, 0, 1};
  TraceEvent event;
  event.type = EventType::transfer;
  event.stream = static_cast<std::uint8_t>(StreamId::file_in);
  event.kind = static_cast<std::uint8_t>(read);
  event.bytes_read = event.bytes_written = 499;
  EXPECT_EQ(op_time(event, cluster).picoseconds, 1'998'000);
  event.bytes_read = event.bytes_written = 500;
  EXPECT_EQ(op_time(event, cluster).picoseconds, 5'100'000);
}

TEST(Fitted, RanksOfANodeShareItsHostAndFilesAndNotTheirDevicesAndBuses) {
  constexpr auto kType = static_cast<std::size_t>(DType::f32);
  ClusterSpec cluster = plain_cluster();  // nodes of 8
  RankCoefficients entry;
  entry.ranks = 2;
  entry.ops[kOpKind<AdamStep>][kType] = {1e-6, 0, 0, 0.1, 9};
  entry.host_ops[kOpKind<AdamStep>][kType] = {0, 0, 1e-9, 0.2, 9};
  entry.routes[static_cast<std::size_t>(Route::device_to_host)] = {0, 0, 2e-9, 0, 9};
  entry.routes[static_cast<std::size_t>(Route::file_to_host)] = {0, 1e-6, 3e-9, 0, 9};
  cluster.calibration = Calibration{{entry}, 0, 0, 1};
  const auto time = [&](EventType type, StreamId stream, std::uint8_t kind, int devices) {
    TraceEvent event;
    event.type = type;
    event.stream = static_cast<std::uint8_t>(stream);
    event.kind = kind;
    event.bytes_read = event.bytes_written = 500;
    event.m = 4;
    return op_time(event, with_devices(cluster, devices)).picoseconds;
  };
  const auto update = [&](StreamId stream, int devices) {
    return time(EventType::op, stream, kOpKind<AdamStep>, devices);
  };
  const auto move = [&](EventType type, StreamId stream, Route route, int devices) {
    return time(type, stream, static_cast<std::uint8_t>(route), devices);
  };
  for (const auto& [devices, share] : {std::pair{1, 0.5}, {2, 1.0}, {8, 4.0}, {64, 4.0}}) {
    EXPECT_EQ(update(StreamId::compute, devices), 1'000'000);
    EXPECT_EQ(update(StreamId::host, devices), 1'000'000 * share);
    EXPECT_EQ(move(EventType::copy, StreamId::copy_out, Route::device_to_host, devices), 2'000'000);
    EXPECT_EQ(move(EventType::transfer, StreamId::file_in, Route::file_to_host, devices),
              7'000'000 * share);
  }
}

}  // namespace
}  // namespace zl::sim
