#include "simulator/cluster/software.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/base/error.h"
#include "core/ops/op.h"
#include "core/train/strategy.h"
#include "simulator/cost/attention_curves.h"
#include "simulator/cost/collective.h"
#include "simulator/cost/price.h"
#include "simulator/timeline.h"
#include "tests/simulator/trace_builder.h"

namespace zl::sim {
namespace {

using test::kMain;
using test::kMillisecond;
using test::plain_cluster;
using test::TraceBuilder;

const std::string kText = R"({"schema": 2, "name": "half",
  "kernels": {"gemm": 0.5, "memory": 0.25, "reduction": 0.5,
              "attention": {"kernel": "unfused", "hopper": "cudnn"},
              "ops": {"norm_forward": {"bytes_per_element": 40, "kernels": 9}}},
  "host": {"op_seconds": 2e-3, "step_seconds": 5e-3, "collective_seconds": 7e-3},
  "communication": {"intra": 0.2, "inter": 0.1, "overlap_loss": 0.4, "gather_copies": 2},
  "step_error": {"unsupported": 0.3, "ampere": 0.1}, "fitted": ["kernels.gemm"]})";

// Of a model that is GPT-2's kind.
ClusterSpec under(ClusterSpec cluster, const Software& software) {
  return with_software(std::move(cluster), software, ModelConfig{});
}

std::string message_of(const std::string& from, const std::string& to) {
  std::string text = kText;
  text.replace(text.find(from), from.size(), to);
  try {
    parse_software(text, "half.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid);
    return error.what();
  }
  return "no error";
}

void expect_message(const std::string& from, const std::string& to, const std::string& part) {
  const std::string message = message_of(from, to);
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

double seconds_of(const TraceEvent& event, const ClusterSpec& cluster) {
  return static_cast<double>(op_time(event, cluster).picoseconds) * 1e-12;
}

TEST(Software, ErrorsNameTheKeyAndTheValue) {
  EXPECT_EQ(message_of("\"gemm\": 0.5", "\"gemm\": 0"),
            "half.json: software.kernels.gemm: 0 is not above 0");
  expect_message("\"gemm\": 0.5", "\"gemm\": 1.5", "software.kernels.gemm: 1.5");
  expect_message("\"memory\"", "\"memry\": 1, \"memory\"", "nearest");
  expect_message("\"schema\": 2", "\"schema\": 1", "software.schema");
  expect_message("\"unfused\"", "\"fused\"", "flash-2");
  expect_message("\"hopper\": \"cudnn\"", "\"hoper\": \"cudnn\"", "hopper");
  expect_message("norm_forward", "norm_forwards", "norm_forward");
  expect_message("\"unsupported\": 0.3, ", "", "step_error.unsupported: is missing");
  expect_message("[\"kernels.gemm\"]", "[\"kernels.gem\"]", "software.fitted");
  expect_message("{", "[", "half.json:1:10: malformed JSON");
}

TEST(Software, RatesBecomeSharesOfTheClusters) {
  const ClusterSpec plain = plain_cluster(2);
  const ClusterSpec slow = under(plain, parse_software(kText, "half.json"));
  const auto ratio = [&](const TraceEvent& event) {
    return seconds_of(event, slow) / seconds_of(event, plain);
  };
  TraceEvent gemm;
  gemm.kind = kOpKind<Gemm>;
  gemm.m = gemm.n = gemm.k = 1000;
  EXPECT_NEAR(ratio(gemm), 2, 1e-6);
  TraceEvent stream;
  stream.kind = kOpKind<ActivationForward>;
  stream.bytes_read = 1'000'000'000;
  EXPECT_NEAR(ratio(stream), 4, 1e-6);
  stream.kind = kOpKind<NormBackward>;
  EXPECT_NEAR(ratio(stream), 8, 1e-6) << "sums over rows";
  // 40 bytes for each of a thousand by a thousand elements, where this core moves 8.
  stream.kind = kOpKind<NormForward>;
  stream.m = stream.n = 1000;
  stream.bytes_read = 8'000'000;
  EXPECT_NEAR(ratio(stream), 4 * 5, 1e-6);
}

// Of 16-bit types: an odd vocabulary, on the GPUs that the profile names.
TEST(Software, UnalignedProductsAreSlower) {
  std::string text = kText;
  text.replace(text.find("\"gemm\": 0.5"), 11, R"("gemm": 0.5, "gemm_unaligned": {"hopper": 0.2})");
  ClusterSpec plain = plain_cluster();
  const Software software = parse_software(text, "half.json");
  const auto seconds = [&](std::int64_t n, DType type) {
    TraceEvent gemm;
    gemm.kind = kOpKind<Gemm>;
    gemm.m = gemm.k = 8000;
    gemm.n = n;
    gemm.dtype = type;
    return seconds_of(gemm, under(plain, software));
  };
  for (const DType type : {DType::bf16, DType::f32}) {
    plain.device.generation = Generation::ampere;
    EXPECT_NEAR(seconds(50257, type) / seconds(50304, type), 1, 0.01);
    plain.device.generation = Generation::hopper;
    EXPECT_NEAR(seconds(50257, type) / seconds(50304, type), type == DType::bf16 ? 5 : 1, 0.05);
  }
}

// RMSNorm in ops, and the factors of a gate, are other kernels than LayerNorm and GELU.
TEST(Software, OpsGoByTheModelsNormAndActivation) {
  std::string text = kText;
  const std::string ops = R"("norm_forward": {"bytes_per_element": 40, "kernels": 9})";
  text.replace(text.find(ops), ops.size(), R"(
      "norm_forward": {"bytes_per_element": 10, "kernels": 2,
                       "rms_norm": {"bytes_per_element": 42, "kernels": 9}},
      "activation_forward": {"gated": {"bytes_per_element": 10, "kernels": 2}})");
  const Software software = parse_software(text, "half.json");
  const auto work = [&](NormKind norm, ActivationKind activation, std::size_t kind) {
    ModelConfig model;
    model.norm = norm;
    model.activation = activation;
    return with_software(plain_cluster(), software, model).device.software.ops[kind];
  };
  constexpr auto kGelu = ActivationKind::gelu_tanh, kSwiglu = ActivationKind::swiglu;
  constexpr auto kNorm = kOpKind<NormForward>, kActivation = kOpKind<ActivationForward>;
  EXPECT_EQ(work(NormKind::layer_norm, kSwiglu, kNorm), (OpWork{10, 2}));
  EXPECT_EQ(work(NormKind::rms_norm, kGelu, kNorm), (OpWork{42, 9}));
  EXPECT_EQ(work(NormKind::rms_norm, kGelu, kActivation), (OpWork{0, 1})) << "as this core";
  EXPECT_EQ(work(NormKind::layer_norm, kSwiglu, kActivation), (OpWork{10, 2}));
  text.replace(text.find("gated"), 5, "gate");
  EXPECT_THROW(parse_software(text, "half.json"), Error);
}

// A ring of two: each sends half of a gigabyte at a fifth of the rate; what was gathered is copied
// out at 2 bytes a byte.
TEST(Software, LinksAreSlowerAndWhatIsGatheredIsCopied) {
  const ClusterSpec plain = plain_cluster(2);
  Software half = parse_software(kText, "half.json");
  const ClusterSpec slow = under(plain, half);
  half.kernels.gather_copies = 0;
  const ClusterSpec uncopied = under(plain, half);
  TraceBuilder wire;
  const TraceEvent gather = wire.collective(kMain, CollectiveKind::all_gather, 1'000'000'000, 2);
  EXPECT_NEAR(seconds_of(gather, uncopied) / seconds_of(gather, plain), 5, 0.05);
  const double copies = seconds_of(gather, slow) - seconds_of(gather, uncopied);
  const DeviceSpec& device = slow.device;
  EXPECT_NEAR(copies,
              2.0 * 2 * static_cast<double>(gather.wire_bytes) /
                  (device.memory_bandwidth * device.memory_efficiency),
              1e-6);
}

// Packed signs of 1-bit optimizers go through the host where their library knows no devices, every
// byte of the whole vector so many times; what is gathered otherwise does not.
TEST(Software, PackedSignsAreStagedInTheHostsMemory) {
  Software software = parse_software(kText, "half.json");
  software.kernels.gather_copies = 0;
  const ClusterSpec direct = under(plain_cluster(4), software);
  software.kernels.staged_copies = 3;
  const ClusterSpec staged = under(plain_cluster(4), software);
  TraceBuilder wire;
  TraceEvent signs = wire.collective(kMain, CollectiveKind::all_to_all, 1'000'000, 4);
  EXPECT_EQ(seconds_of(signs, staged), seconds_of(signs, direct)) << "floats";
  signs.dtype = DType::u8;
  const double whole = static_cast<double>(signs.wire_bytes) * 4 / 3;
  EXPECT_NEAR(seconds_of(signs, staged) - seconds_of(signs, direct), 3 * whole / staged.host.rate(),
              1e-9);
}

// Between nodes of two, where one connection of a rank is not all that its adapter has.
TEST(Software, AnAllToAllHasSeveralConnections) {
  Software software = parse_software(kText, "half.json");
  software.kernels.gather_copies = 0;
  ClusterSpec cluster = plain_cluster(4);
  cluster.node_devices = 2;
  const ClusterSpec one = under(cluster, software);
  software.kernels.connections = 2;
  const ClusterSpec two = under(cluster, software);
  TraceBuilder wire;
  const auto ratio = [&](CollectiveKind kind) {
    const TraceEvent event = wire.collective(kMain, kind, 1'000'000'000, 4);
    return seconds_of(event, one) / seconds_of(event, two);
  };
  EXPECT_NEAR(ratio(CollectiveKind::all_to_all), 2, 0.05);
  EXPECT_EQ(ratio(CollectiveKind::all_gather), 1) << "a ring has one";
}

TEST(Software, TheHostIssuesOpsAndEndsStepsMoreSlowly) {
  TraceBuilder trace;
  for (int i = 0; i < 3; ++i) trace.op(kMain, 0.001);
  ClusterSpec cluster = under(plain_cluster(), parse_software(kText, "half.json"));
  const Timeline timeline = price(trace.trace, cluster);
  ASSERT_EQ(timeline.steps.size(), 1u);
  // Each op of a microsecond waits for the host; then the end of the step.
  EXPECT_EQ(timeline.total, 11 * kMillisecond);
  EXPECT_EQ(timeline.steps[0].spread, 0.3);
  const CostModel model(cluster);
  TraceEvent event;
  event.kind = kOpKind<NormForward>;
  EXPECT_EQ(model.issue_picoseconds(event), 18 * kMillisecond) << "nine kernels";
  event.type = EventType::collective;
  EXPECT_EQ(model.issue_picoseconds(event), 7 * kMillisecond);
}

// Two nodes of eight: eight adapters a node, or as many as the software keeps busy.
TEST(Software, ARingUsesTheAdaptersThatItsSoftwareKeepsBusy) {
  ClusterSpec cluster = plain_cluster(16);
  cluster.node_devices = 8;
  cluster.intra.bandwidth = 1e15;
  const Placement both = place(16, 1, 8);
  EXPECT_DOUBLE_EQ(ring_rate(both, cluster), 8 * cluster.inter.rate());
  cluster.device.software.adapters = 1.5;
  EXPECT_DOUBLE_EQ(ring_rate(both, cluster), 1.5 * cluster.inter.rate());
  EXPECT_DOUBLE_EQ(ring_rate(place(8, 1, 8), cluster), cluster.intra.rate()) << "within a node";
}

TEST(Software, OperatorsTimedApartWaitForTheHostEach) {
  TraceBuilder trace;
  for (int i = 0; i < 3; ++i) trace.op(kMain, 0.001);
  const ClusterSpec cluster =
      timed_apart(under(plain_cluster(), parse_software(kText, "half.json")));
  EXPECT_EQ(price(trace.trace, cluster).total, 6 * kMillisecond) << "and no end of the step";
  TraceEvent message;
  message.type = EventType::message;
  Software slow = parse_software(kText, "half.json");
  slow.kernels.message_host_seconds = 3e-3;
  const ClusterSpec pipeline = under(plain_cluster(), slow);
  EXPECT_EQ(CostModel(pipeline).issue_picoseconds(message), 3 * kMillisecond);
}

TEST(Software, ErrorsAreThoseOfTheGenerationWhereRunsSupportIt) {
  const Software half = parse_software(kText, "half.json");
  ClusterSpec cluster = plain_cluster();
  cluster.device.generation = Generation::ampere;
  EXPECT_EQ(under(cluster, half).step_error, 0.1);
  cluster.device.generation = Generation::hopper;
  EXPECT_EQ(under(cluster, half).step_error, 0.3);
  EXPECT_EQ(under(cluster, half).device.software.attention, AttentionKernel::cudnn);
  EXPECT_TRUE(half.knows(Generation::ampere));
  EXPECT_FALSE(half.knows(Generation::hopper));
}

TEST(Software, ErrorsAreThoseOfTheTechniquesThatRunsUsed) {
  std::string text = kText;
  const std::string any = R"("ampere": 0.1)";
  const auto with_techniques = [&any](const std::string& list) {
    return any + R"(, "techniques": {"ampere": )" + list + "}";
  };
  text.replace(text.find(any), any.size(),
               with_techniques(R"([["zero-3", "tensor"], ["zero-1"]])"));
  ClusterSpec cluster = plain_cluster();
  cluster.device.generation = Generation::ampere;
  const ClusterSpec half = under(cluster, parse_software(text, "half.json"));
  Strategy strategy;
  strategy.zero.stage = 3;
  EXPECT_EQ(with_strategy(half, strategy), half);
  strategy.tensor.ranks = 2;
  EXPECT_EQ(with_strategy(half, strategy), half);
  strategy.offload.optimizer = Tier::cpu;
  EXPECT_EQ(with_strategy(half, strategy).step_error, 0.3);
  EXPECT_FALSE(with_strategy(half, strategy).is_supported);
  EXPECT_EQ(with_strategy(half, Strategy{}).step_error, 0.3) << "no run was of ZeRO-0";
  Strategy together;
  together.zero.stage = 1;
  EXPECT_EQ(with_strategy(half, together), half);
  together.tensor.ranks = 2;
  EXPECT_FALSE(with_strategy(half, together).is_supported) << "each, but no run of both";
  const ClusterSpec any_strategy = under(cluster, parse_software(kText, "half.json"));
  EXPECT_EQ(with_strategy(any_strategy, strategy), any_strategy) << "a profile that names none";
  EXPECT_EQ(with_strategy(cluster, strategy), cluster);
  expect_message(any, with_techniques(R"([["zero-4"]])"),
                 "software.step_error.techniques.ampere: \"zero-4\" is not one of zero-0, zero-1");
  expect_message(any, with_techniques(R"(["zero-3"])"),
                 "\"zero-3\" is not a list of zero-0, zero-1, ");
  expect_message(any, with_techniques("3"), "3 is not a list of lists of zero-0, zero-1, ");
}

TEST(Software, TechniqueSetsKeepTheLargest) {
  TechniqueSets sets;
  for (const unsigned used : {0b0110U, 0b0001U, 0b0010U, 0b1001U, 0b0110U}) add_to(sets, used);
  EXPECT_EQ(sets, (TechniqueSets{0b0110U, 0b1001U}));
  EXPECT_TRUE(covers(sets, 0b1000U));
  EXPECT_FALSE(covers(sets, 0b0011U));
}

// Each by itself: what it adds to plain data parallelism.
TEST(Software, TechniquesAreThoseOfTheStrategy) {
  const auto names_of = [](const std::function<void(Strategy&)>& change) {
    Strategy strategy;
    change(strategy);
    std::string names;
    for (const std::string& name : sim::names_of(techniques_of(strategy))) names += " " + name;
    return names;
  };
  EXPECT_EQ(names_of([](Strategy&) {}), " zero-0");
  EXPECT_EQ(names_of([](Strategy& s) { s.zero.stage = 2; }), " zero-2");
  EXPECT_EQ(names_of([](Strategy& s) { s.zero.replicas = 2; }), " zero-0 copies");
  EXPECT_EQ(names_of([](Strategy& s) { s.zero.secondary_partition = 2; }), " zero-0 copies");
  EXPECT_EQ(names_of([](Strategy& s) { s.tensor.ranks = 2; }), " zero-0 tensor");
  EXPECT_EQ(names_of([](Strategy& s) { s.pipeline.ranks = 2; }), " zero-0 pipeline");
  EXPECT_EQ(names_of([](Strategy& s) { s.offload.activations = true; }), " zero-0 offload");
  EXPECT_EQ(names_of([](Strategy& s) { s.offload.optimizer = Tier::nvme; }),
            " zero-0 offload files");
  EXPECT_EQ(names_of([](Strategy& s) { s.zero.quantized_weights = true; }), " zero-0 compression");
  EXPECT_EQ(names_of([](Strategy& s) { s.optimizer.kind = OptimizerKind::zero_one_adam; }),
            " zero-0 compression");
  EXPECT_EQ(names_of([](Strategy& s) { s.sparse_attention.mode = SparseMode::fixed; }),
            " zero-0 sparse");
}

// By hand: 2 heads, 100 tokens, head size 8, fp16. 20,000 scores of 13 bytes forward and 19
// backward; two products of 2 x 20,000 x 8 FLOPs forward, four backward.
TEST(Software, UnfusedAttentionPaysForEveryScore) {
  const ClusterSpec cluster = under(plain_cluster(), parse_software(kText, "half.json"));
  TraceEvent event;
  event.dtype = DType::f16;
  event.m = 2;
  event.n = 100;
  event.k = 8;
  event.kind = kOpKind<AttentionForward>;
  const double forward = 2 * 2 * 20'000 * 8 / 0.5e12 + 20'000 * 13 / 0.25e12;
  EXPECT_NEAR(static_cast<double>(op_time(event, cluster).picoseconds), forward * 1e12, 1);
  event.kind = kOpKind<AttentionBackward>;
  const double backward = 4 * 2 * 20'000 * 8 / 0.5e12 + 20'000 * 19 / 0.25e12;
  EXPECT_NEAR(static_cast<double>(op_time(event, cluster).picoseconds), backward * 1e12, 1);
}

// Charts of flash-attention's assets: 16k tokens, 2048 hidden; TFLOP/s.
TEST(Software, AttentionRunsAsThePublicBenchmarksSay) {
  struct Point {
    AttentionKernel kernel;
    Generation generation;
    double head, tokens;
    bool causal;
    double forward, both;  // 0: not in the chart
  };
  constexpr auto kFlash2 = AttentionKernel::flash_2, kFlash1 = AttentionKernel::flash_1;
  constexpr auto kAmpere = Generation::ampere, kHopper = Generation::hopper;
  for (const Point& point : {Point{kFlash2, kAmpere, 64, 2048, true, 0, 140},
                             Point{kFlash2, kAmpere, 128, 16384, false, 0, 203},
                             Point{kFlash2, kAmpere, 128, 512, true, 0, 99},
                             Point{kFlash1, kAmpere, 64, 16384, false, 0, 110},
                             Point{kFlash2, kHopper, 128, 8192, true, 333, 308},
                             Point{kFlash2, kHopper, 64, 1024, true, 229, 192},
                             Point{AttentionKernel::flash_3, kHopper, 128, 16384, true, 616, 0},
                             Point{AttentionKernel::cudnn, kHopper, 128, 4096, false, 600, 0}}) {
    DeviceSpec device;
    device.generation = point.generation;
    device.multiprocessors = point.generation == kAmpere ? 108 : 132;
    device.rates.fill({point.generation == kAmpere ? 3.12e14 : 9.89e14, 0.8});
    const AttentionWork work{.planes = 16384 / point.tokens * 2048 / point.head,
                             .tokens = point.tokens,
                             .head = point.head,
                             .causal = point.causal};
    const auto speed = [&](AttentionPass pass) {
      return attention_speed(point.kernel, pass, work, device) * 1e-12;
    };
    const double forward = speed(AttentionPass::forward);
    const double both = 3.5 / (1 / forward + 2.5 / speed(AttentionPass::backward));
    if (point.forward > 0) {
      EXPECT_NEAR(forward / point.forward, 1, 0.09) << point.tokens;
    }
    if (point.both > 0) {
      EXPECT_NEAR(both / point.both, 1, 0.12) << point.tokens;
    }
  }
}

TEST(Software, HeadsAreFilledUpToTheSizesThereAre) {
  DeviceSpec device;
  device.generation = Generation::ampere;
  device.multiprocessors = 108;
  device.rates.fill({3.12e14, 0.8});
  const auto speed = [&](AttentionKernel kernel, double head) {
    return attention_speed(kernel, AttentionPass::forward,
                           {.planes = 1000, .tokens = 2048, .head = head, .causal = true}, device);
  };
  EXPECT_NEAR(speed(AttentionKernel::flash_2, 80) / speed(AttentionKernel::flash_2, 96), 80.0 / 96,
              1e-9);
  EXPECT_NEAR(speed(AttentionKernel::flash_triton, 80) / speed(AttentionKernel::flash_triton, 128),
              80.0 / 128, 1e-9);
  EXPECT_EQ(speed(AttentionKernel::core, 80), 0);
}

TEST(Software, APowerLimitSlowsProductsAndNotMemory) {
  ClusterSpec plain = plain_cluster(), limited = plain;
  limited.device.power_limit = 400;
  limited.device.power_design = 625;
  TraceEvent gemm;
  gemm.kind = kOpKind<Gemm>;
  gemm.m = gemm.n = gemm.k = 1000;
  EXPECT_NEAR(seconds_of(gemm, limited) / seconds_of(gemm, plain), 1.25, 1e-6);
  TraceEvent stream;
  stream.kind = kOpKind<NormForward>;
  stream.bytes_read = 1'000'000'000;
  EXPECT_EQ(seconds_of(stream, limited), seconds_of(stream, plain));
}

TEST(Software, MeasuredMachinesKeepTheirPrices) {
  const Software half = parse_software(kText, "half.json");
  ClusterSpec measured = plain_cluster();
  measured.calibration = Calibration{};
  ClusterSpec host = plain_cluster();
  host.compute_is_host = true;
  for (const ClusterSpec& cluster : {measured, host}) {
    try {
      under(cluster, half);
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("run.software: \"half\""), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace zl::sim
