#include "scenarios/launch/torchtitan_terms.h"

#include <algorithm>
#include <array>

namespace zl {
namespace {

struct TorchtitanSchedule {
  PipelineKind kind;
  std::string_view name;
  bool several = false;
};

constexpr std::array<TorchtitanSchedule, 7> kTorchtitanSchedules{{
    {PipelineKind::one_f_one_b, "1F1B"},
    {PipelineKind::gpipe, "GPipe"},
    {PipelineKind::breadth_first, "LoopedBFS", true},
    {PipelineKind::interleaved, "Interleaved1F1B", true},
    {PipelineKind::interleaved_zb, "InterleavedZeroBubble", true},
    {PipelineKind::zb_v, "ZBVZeroBubble", true},
    {PipelineKind::dualpipe_v, "DualPipeV", true},
}};

constexpr std::array<TorchtitanModel, 5> kModels{{
    {"llama3-8b", "llama3", "8B", "llama3_8b", 32},
    {"llama3-70b", "llama3", "70B", "llama3_70b", 80},
    {"llama3.1-405b", "llama3", "405B", "llama3_405b", 126},
    {"qwen3-0.6b", "qwen3", "0.6B", "qwen3_0_6b", 28},
    {"qwen3-8b", "qwen3", "8B", "", 36},
}};

const TorchtitanSchedule* find_kind(PipelineKind kind) {
  const auto found = std::ranges::find(kTorchtitanSchedules, kind, &TorchtitanSchedule::kind);
  return found == kTorchtitanSchedules.end() ? nullptr : &*found;
}

}  // namespace

std::string_view torchtitan_schedule(PipelineKind kind) {
  const TorchtitanSchedule* found = find_kind(kind);
  return found == nullptr ? std::string_view() : found->name;
}

std::optional<PipelineKind> schedule_of_torchtitan(std::string_view name) {
  const auto found = std::ranges::find(kTorchtitanSchedules, name, &TorchtitanSchedule::name);
  if (found == kTorchtitanSchedules.end()) return std::nullopt;
  return found->kind;
}

bool has_several_stages(PipelineKind kind) {
  const TorchtitanSchedule* found = find_kind(kind);
  return found != nullptr && found->several;
}

const TorchtitanModel* torchtitan_model(std::string_view name) {
  const auto found = std::ranges::find(kModels, name, &TorchtitanModel::name);
  return found == kModels.end() ? nullptr : &*found;
}

const TorchtitanModel* torchtitan_flavor(std::string_view module, std::string_view flavor) {
  const auto found = std::ranges::find_if(kModels, [&](const TorchtitanModel& each) {
    return each.module == module && each.flavor == flavor;
  });
  return found == kModels.end() ? nullptr : &*found;
}

}  // namespace zl
