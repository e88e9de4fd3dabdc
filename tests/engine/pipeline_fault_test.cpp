// A rank of any stage and of any place in the mesh that throws, in any part of the step, ends all:
// the run ends within two seconds and says what was thrown, and no other rank is left waiting.
#include "tests/engine/faults.h"
#include "tests/engine/pipelines.h"

namespace zl::test {
namespace {

const std::vector<Place> kOfPipelines{{"a forward", Phase::forward},
                                      {"a backward", Phase::backward},
                                      {"the update", Phase::optimizer},
                                      {"a send", {}, {}, true},
                                      {"a receive", {}, {}, false}};

TEST(PipelineFault, OfAnyStageAndPhaseEndsAllByName) {
  constexpr int kDeepest = 3;
  const auto expect = [](const Strategy& s) {
    expect_ends(static_cast<int>(s.pipeline.ranks), four_layers(tiny_gpt2()), s, kOfPipelines,
                name_of(s.pipeline.schedule));
  };
  using enum PipelineKind;
  for (const int stage : {0, 3}) {
    Strategy plain = accumulated(stage, DType::f32, 6);
    plain.zero.overlap_comm = stage == 3;
    expect(piped(plain, one_f_one_b, kDeepest));
    expect(piped(plain, zb_h1, kDeepest));
    expect(piped(plain, interleaved, 2, 2));
    expect(piped(plain, zb_v, 2, 2));
  }
}

std::vector<Place> places_of(const Strategy& s) {
  std::vector<Place> places{{"a recomputation", Phase::recompute},
                            {"a reduction", Phase::reduce},
                            {"a gather", Phase::gather}};
  places.insert(places.end(), kOfPipelines.begin(), kOfPipelines.begin() + 3);
  if (s.pipeline.ranks > 1) {
    places.insert(places.end(), kOfPipelines.begin() + 3, kOfPipelines.end());
  }
  if (s.tensor.ranks > 1) places.push_back({"a tensor collective", {}, Axis::tensor});
  if (s.zero.replicas > 1) places.push_back({"a sum over copies", {}, Axis::replicate});
  return places;
}

TEST(MeshFault, OfAnyRankAndPhaseEndsAllByName) {
  Strategy plain = accumulated(3, DType::f32, 4);
  plain.recompute.mode = RecomputeMode::full;
  plain.zero.overlap_comm = true;
  const ModelConfig model = four_layers(tiny_llama());
  Strategy whole = piped(plain, PipelineKind::one_f_one_b, 2);
  whole.tensor = {.ranks = 2, .sequence_parallel = true};
  expect_ends(8, model, whole, places_of(whole), "tensor 2 x pipeline 2 x data 2");
  Strategy halves = piped(plain, PipelineKind::zb_v, 2, 2);
  halves.tensor.ranks = 2;
  expect_ends(4, model, halves, places_of(halves), "tensor 2 x pipeline 2");
  Strategy copies = plain;
  copies.zero.replicas = 2;
  expect_ends(4, model, copies, places_of(copies), "hsdp 2 x 2");
}

}  // namespace
}  // namespace zl::test
