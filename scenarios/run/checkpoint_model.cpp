#include "scenarios/run/checkpoint_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>

#include "backends/cpu/file_storage.h"
#include "backends/cpu/world.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "core/checkpoint/checkpoint_folder.h"
#include "core/checkpoint/state_file.h"
#include "core/checkpoint/training_checkpoint.h"
#include "core/train/engine.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

// The folders of runs: `folder` itself, or those in it.
std::vector<std::string> runs_in(const std::string& folder) {
  if (!completed_steps(folder).empty()) return {folder};
  std::vector<std::string> runs;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.is_directory(none) && !completed_steps(entry.path().string()).empty()) {
      runs.push_back(entry.path().string());
    }
  }
  return runs;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::invalid, path + ": " + why);
}

std::int64_t number(const Labels& labels, const std::string& name, const std::string& path) {
  const auto found = labels.find(name);
  if (found != labels.end()) {
    if (const auto value = integer_in(found->second)) return *value;
  }
  refuse(path, "it does not say its " + name);
}

void gather(const CheckpointedRun& run, RankHandle handle, const TakeCheckpointed& take) {
  const Strategy& strategy = run.is.strategy;
  const int rank = handle.communicator.rank();
  std::unique_ptr<Storage> storage;  // outlives the work of the context
  if (strategy.offload.files()) {
    storage = cpu::make_file_storage(strategy.offload.nvme_path, rank, strategy.offload.aio);
  }
  RankContext context(handle.device, handle.communicator, {.mesh = mesh_of(strategy, run.ranks)});
  context.use_storage(storage.get());
  Engine engine(context, run.is.model, strategy, number(run.labels, "sequence_length", run.folder),
                InitialWeights(0));
  restore_state(context, read_rank_file(run.folder, run.step, rank, run.ranks, run.labels), engine);
  engine.gather_model(take);
}

class KeptWeights final : public WeightSource {
 public:
  void take(const ParameterSpec& spec, const std::vector<float>& values) {
    values_[spec.number] = values;
  }
  void read(int parameter, std::int64_t begin, std::span<float> out) const override {
    std::copy_n(values_.at(parameter).begin() + begin, out.size(), out.begin());
  }

 private:
  std::map<int, std::vector<float>> values_;
};

}  // namespace

bool is_checkpoint(const std::string& folder) { return !runs_in(folder).empty(); }

CheckpointedRun read_checkpointed_run(const std::string& folder) {
  const std::vector<std::string> runs = runs_in(folder);
  if (runs.empty()) refuse(folder, "holds no completed step of a run; give a --checkpoint folder");
  if (runs.size() > 1) {
    std::vector<std::string> names;
    for (const std::string& run : runs) names.push_back(fs::path(run).filename().string());
    refuse(folder, "holds several runs; give the folder of one: " + join(names, ", "));
  }
  CheckpointedRun run{.folder = runs.front()};
  run.step = completed_steps(run.folder).front();
  const std::string manifest = manifest_file(run.folder, run.step);
  run.labels = read_safetensors(manifest).metadata;
  run.ranks = static_cast<int>(number(run.labels, "ranks", manifest));
  run.is = identified_by(run.labels, run.ranks, manifest);
  return run;
}

void gather_checkpointed_model(const CheckpointedRun& run, const TakeCheckpointed& take) {
  const auto world = cpu::make_world({.ranks = run.ranks});
  world->run([&](RankHandle handle) { gather(run, handle, take); });
}

std::shared_ptr<const WeightSource> checkpointed_weights(const CheckpointedRun& run) {
  const auto kept = std::make_shared<KeptWeights>();
  gather_checkpointed_model(run, [&](const ParameterSpec& spec, const std::vector<float>& values) {
    kept->take(spec, values);
  });
  return kept;
}

}  // namespace zl
