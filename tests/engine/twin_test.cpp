// The simulated twin: the recording device's books equal the real run's exactly, and both equal the
// closed forms of ZeRO (Rajbhandari et al. 2020).
#include "tests/engine/comparisons.h"

namespace zl::test {
namespace {

std::vector<Strategy> all_strategies(DType dtype) {
  std::vector<Strategy> all;
  for (int stage = 0; stage <= 3; ++stage) {
    for (const bool overlap : {false, true}) {
      for (const RecomputeConfig& recompute :
           {RecomputeConfig{}, RecomputeConfig{.mode = RecomputeMode::full},
            RecomputeConfig{.mode = RecomputeMode::every_k, .every = 2},
            RecomputeConfig{.mode = RecomputeMode::selective, .attention = true},
            RecomputeConfig{.mode = RecomputeMode::selective, .products = true}}) {
        Strategy s = strategy(stage, dtype);
        s.zero.overlap_comm = overlap;
        s.recompute = recompute;
        all.push_back(s);
      }
    }
  }
  return all;
}

// Every pair of a family, a strategy and a type, not every three of them.
TEST(Twin, BooksAreEqualForEveryStrategyAndFamily) {
  const std::vector<Strategy> all[] = {all_strategies(DType::f32), all_strategies(DType::bf16)};
  std::size_t family = 0;
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama(), tiny_qwen3(), tiny_gemma(),
                                   with_dropout(tiny_bert()), with_dropout(tiny_labels())}) {
    for (std::size_t i = 0; i < all[0].size(); ++i) {
      const Strategy& s = all[(family + i) % 2][i];
      const Finished real = run_cpu(3, model, s, steps(6));
      ProgramOptions recorded = steps(6);
      recorded.recorded_steps = kSteadySteps;
      const Finished twin = run_sim(3, model, s, recorded);
      expect_twins(real.result, twin.result,
                   model.name + " " + s.name + (s.zero.overlap_comm ? " overlap" : "") +
                       " recompute " + std::to_string(static_cast<int>(s.recompute.mode)));
    }
    ++family;
  }
}

TEST(Twin, BooksAreEqualWithAccumulationAndCommunicationType) {
  for (int stage = 0; stage <= 3; ++stage) {
    Strategy s = strategy(stage, DType::bf16);
    s.gradient_accumulation = 2;
    s.precision.communication_dtype = DType::bf16;
    s.zero.overlap_comm = true;
    expect_twins(run_cpu(2, tiny_gpt2(), s, steps(3)).result,
                 run_sim(2, tiny_gpt2(), s, steps(3)).result, s.name);
  }
}

// Padded parameter elements and the wire bytes of a group per step.
std::int64_t padded_elements(const ModelConfig& model, int ranks) {
  return Partition(ParameterTable(model).counts(), ranks, 0).full_elements();
}

std::int64_t data_bytes_per_step(const RunResult& r, std::int64_t steps_taken,
                                 const std::string& collective) {
  for (const CollectiveTotals& c : r.communication) {
    if (c.group == "data" && c.collective == collective) return c.bytes / steps_taken;
  }
  return 0;
}

TEST(Wire, TwoPsiForStages0To2AndThreePsiForStage3) {
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    for (const int ranks : {2, 3, 4, 8}) {
      const std::int64_t psi = padded_elements(model, ranks);
      const std::int64_t unit = psi / ranks * (ranks - 1) * 4;  // Psi (N-1)/N elements in fp32
      for (int stage = 0; stage <= 3; ++stage) {
        const RunResult r = run_sim(ranks, model, strategy(stage), steps(3)).result;
        const std::int64_t reduce = data_bytes_per_step(r, 3, "reduce_scatter");
        const std::int64_t gather = data_bytes_per_step(r, 3, "all_gather");
        const std::int64_t all_reduce = data_bytes_per_step(r, 3, "all_reduce");
        EXPECT_EQ(all_reduce, stage == 0 ? 2 * unit : 0) << model.name << stage;
        EXPECT_EQ(reduce, stage == 0 ? 0 : unit) << model.name << stage;
        EXPECT_EQ(gather, stage == 0 ? 0 : (stage == 3 ? 2 : 1) * unit) << model.name << stage;
        // The scalars: largest gradient (1 fp32), squared norm (2 fp64), loss and stop vote (2
        // fp32).
        const auto scalars = [&](std::int64_t count, std::int64_t size) {
          return 2 * (ranks - 1) * ((count + ranks - 1) / ranks) * size;
        };
        const std::int64_t control = scalars(1, 4) + scalars(2, 8) + scalars(2, 4);
        EXPECT_EQ(r.wire_bytes_per_step, all_reduce + reduce + gather + control) << model.name;
      }
    }
  }
}

// What was held in device memory when it was most, by allocations and frees alone.
std::array<std::int64_t, kMemoryTags> peak_of(const Trace& trace) {
  std::array<std::int64_t, kMemoryTags> held{}, at_peak{};
  std::int64_t total = 0, peak = 0;
  for (const TraceEvent& event : trace.events()) {
    const bool takes = event.type == EventType::allocate;
    if ((!takes && event.type != EventType::free) || event.space != MemorySpace::device) continue;
    held[event.kind] += takes ? event.bytes_written : -event.bytes_written;
    total += takes ? event.bytes_written : -event.bytes_written;
    if (total <= peak) continue;
    peak = total;
    at_peak = held;
  }
  return at_peak;
}

// Parameter, gradient and optimizer bytes of ZeRO's closed form, padding included (fp32: no
// masters).
TEST(Memory, TagsFollowTheClosedForms) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
      const int ranks = 4;
      const std::int64_t psi = padded_elements(model, ranks);
      const std::int64_t weight = static_cast<std::int64_t>(size_of(dtype));
      const std::int64_t state = dtype == DType::f32 ? 8 : 12;
      for (int stage = 0; stage <= 3; ++stage) {
        ProgramOptions options = steps(2);
        options.keep_trace = true;
        const Finished run = run_sim(ranks, model, strategy(stage, dtype), options);
        const RunResult& r = run.result;
        const auto tag = [&](MemoryTag t) {
          return r.peak_device.tag[static_cast<std::size_t>(t)];
        };
        EXPECT_EQ(tag(MemoryTag::optimizer), state * psi / (stage == 0 ? 1 : ranks)) << stage;
        EXPECT_EQ(tag(MemoryTag::gradient), 4 * psi / (stage < 2 ? 1 : ranks)) << stage;
        if (stage < 3) {
          EXPECT_EQ(tag(MemoryTag::parameter), weight * psi) << stage;
        } else {
          EXPECT_GE(tag(MemoryTag::parameter), weight * psi / ranks);
          EXPECT_LT(tag(MemoryTag::parameter), weight * psi);
        }
        // The sum of the closed forms and of what comes and goes, recounted from the trace.
        EXPECT_EQ(r.peak_device.tag, peak_of(run.trace)) << stage;
        EXPECT_GT(tag(MemoryTag::activation), 0) << stage;
      }
    }
  }
}

TEST(Hazards, NoStrategyHasOne) {
  for (const ModelConfig& model : {tiny_gpt2(), tiny_llama()}) {
    for (Strategy s : all_strategies(DType::bf16)) {
      for (const std::int64_t distance : {0, 1'000'000}) {
        s.zero.max_reuse_distance = distance;
        s.gradient_accumulation = 2;
        ProgramOptions options = steps(3);
        options.keep_trace = options.record_accesses = true;
        const Finished twin = run_sim(4, model, s, options);
        const auto hazards = find_hazards(twin.trace, twin.accesses);
        EXPECT_TRUE(hazards.empty())
            << model.name << " " << s.name << ": " << (hazards.empty() ? "" : hazards.front());
      }
    }
  }
}

}  // namespace
}  // namespace zl::test
