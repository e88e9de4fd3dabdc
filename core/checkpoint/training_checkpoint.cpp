#include "core/checkpoint/training_checkpoint.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/state_archive.h"
#include "core/device/rank_context.h"
#include "core/zero/engine.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIdentity = "zerolab.identity";
constexpr std::size_t kKept = 2;

std::string file_of(const std::string& folder, std::int64_t step, int rank, int ranks) {
  char name[64];
  std::snprintf(name, sizeof name, "step-%08lld/rank-%d-of-%d.safetensors",
                static_cast<long long>(step), rank, ranks);
  return (fs::path(folder) / name).string();
}

// Steps that `has` accepts, newest first, of the folders named step-N.
template <class Has>
std::vector<std::int64_t> steps_in(const std::string& folder, Has has) {
  std::set<std::int64_t, std::greater<>> steps;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = 0;
    if (name.rfind("step-", 0) != 0) continue;
    const char* end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + 5, end, step);
    if (parsed.ec == std::errc() && parsed.ptr == end && has(step)) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

bool is_complete(const std::string& folder, std::int64_t step, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (!fs::exists(file_of(folder, step, rank, ranks))) return false;
  }
  return true;
}

void make_folder(const fs::path& folder) {
  std::error_code status;
  fs::create_directories(folder, status);
  if (!status) return;
  throw Error(ErrorCode::failed, folder.string() + ": cannot make the folder of the checkpoint: " +
                                     status.message() + "; choose another --checkpoint folder");
}

class Saving : public StateArchive {
 public:
  explicit Saving(RankContext& context) : context_(context) {}

  bool restores() const override { return false; }
  void tensor(const std::string& name, const TensorView& view, Place place) override {
    if (view.empty()) return;
    auto& bytes = buffers_.emplace_back(static_cast<std::size_t>(view.bytes()));
    if (place == Place::host) {
      std::memcpy(bytes.data(), view.data, bytes.size());
    } else {
      context_.download(StreamId::compute, bytes.data(), view);
      context_.synchronize(StreamId::compute);
    }
    tensors_.push_back({name, view.dtype, {view.count()}, bytes});
  }
  void number(const std::string& name, double& value) override {
    auto& bytes = buffers_.emplace_back(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    tensors_.push_back({name, DType::f64, {}, bytes});
  }
  void write(const std::string& path, const std::string& identity) const {
    write_safetensors(path, tensors_, {{kIdentity, identity}});
  }

 private:
  RankContext& context_;
  std::deque<std::vector<std::byte>> buffers_;
  std::vector<NamedTensor> tensors_;
};

class Restoring : public StateArchive {
 public:
  Restoring(RankContext& context, const SafetensorsFile& file) : context_(context), file_(file) {}

  bool restores() const override { return true; }
  void tensor(const std::string& name, const TensorView& view, Place place) override {
    if (view.empty()) return;
    const NamedTensor& stored = find(name, view.dtype, static_cast<std::size_t>(view.bytes()));
    if (place == Place::host) {
      std::memcpy(view.data, stored.bytes.data(), stored.bytes.size());
      return;
    }
    context_.upload(StreamId::compute, view, stored.bytes.data());
    context_.synchronize(StreamId::compute);
  }
  void number(const std::string& name, double& value) override {
    std::memcpy(&value, find(name, DType::f64, sizeof value).bytes.data(), sizeof value);
  }

 private:
  const NamedTensor& find(const std::string& name, DType dtype, std::size_t bytes) const {
    const NamedTensor& stored = file_.at(name);
    if (stored.dtype == dtype && stored.bytes.size() == bytes) return stored;
    throw Error(ErrorCode::invalid, file_.path + ": \"" + name + "\" has " +
                                        std::to_string(stored.bytes.size()) +
                                        " bytes where this run has " + std::to_string(bytes) +
                                        "; resume with the run's own model and strategy");
  }

  RankContext& context_;
  const SafetensorsFile& file_;
};

// This rank's files of all but the newest steps; the last rank that leaves a folder removes it.
void remove_old(const std::string& folder, int rank, int ranks) {
  const auto mine = [&](std::int64_t step) {
    return fs::exists(file_of(folder, step, rank, ranks));
  };
  const std::vector<std::int64_t> steps = steps_in(folder, mine);
  for (std::size_t i = kKept; i < steps.size(); ++i) {
    const fs::path file = file_of(folder, steps[i], rank, ranks);
    std::error_code ignored;
    fs::remove(file, ignored);
    fs::remove(file.parent_path(), ignored);  // only when empty
  }
}

}  // namespace

std::int64_t newest_checkpoint(const std::string& folder, int ranks) {
  const auto steps =
      steps_in(folder, [&](std::int64_t step) { return is_complete(folder, step, ranks); });
  return steps.empty() ? 0 : steps.front();
}

void prepare_checkpoints(const CheckpointConfig& config) { make_folder(config.folder); }

void save_checkpoint(const CheckpointConfig& config, RankContext& context, Engine& engine) {
  Saving archive(context);
  engine.archive(archive);
  const std::string path = file_of(config.folder, engine.steps(), context.rank(), context.ranks());
  make_folder(fs::path(path).parent_path());
  archive.write(path, config.identity);
  remove_old(config.folder, context.rank(), context.ranks());
}

bool restore_checkpoint(const CheckpointConfig& config, RankContext& context, Engine& engine) {
  const std::int64_t step = newest_checkpoint(config.folder, context.ranks());
  if (step == 0) return false;
  const SafetensorsFile file =
      read_safetensors(file_of(config.folder, step, context.rank(), context.ranks()));
  const auto identity = file.metadata.find(kIdentity);
  if (identity == file.metadata.end() || identity->second != config.identity) {
    throw Error(ErrorCode::invalid,
                file.path +
                    ": is of another model, strategy, data or seed; run without "
                    "--resume or choose another --checkpoint folder");
  }
  Restoring archive(context, file);
  engine.archive(archive);
  ZL_CHECK(engine.steps() == step, "a checkpoint holds the step its folder names");
  return true;
}

}  // namespace zl
