#include "core/checkpoint/training_checkpoint.h"

#include <cstring>
#include <deque>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"

namespace zl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIdentity = "zerolab.identity";
constexpr std::size_t kKept = 2;

class Saving : public StateArchive {
 public:
  explicit Saving(RankContext& context) : context_(context) {}

  bool restores() const override { return false; }
  void tensor(const std::string& name, const TensorView& view, Place place) override {
    if (view.empty()) return;
    auto& bytes = buffers_.emplace_back(view.bytes());
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
    const NamedTensor& stored = find(name, view.dtype, view.bytes());
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

}  // namespace

Checkpoints::Checkpoints(CheckpointConfig config, RankContext& context)
    : config_(std::move(config)), context_(context) {
  if (config_.folder.empty() || context.rank() != 0) return;
  make_checkpoint_folder(config_.folder);
  lock_.emplace(config_.folder);
  if (config_.resume || checkpoint_steps(config_.folder).empty()) return;
  throw Error(ErrorCode::invalid,
              config_.folder + ": holds checkpoints already (" +
                  describe_checkpoints(config_.folder) +
                  "); go on from them with --resume or choose another --checkpoint folder");
}

std::int64_t Checkpoints::begin(Archived& state, std::int64_t steps,
                                std::vector<std::string>& notes) {
  if (config_.folder.empty() || !config_.resume) return 0;
  const std::int64_t done = restore_newest(state, notes);
  if (done < steps) return done;
  throw Error(ErrorCode::invalid, config_.folder + ": step " + std::to_string(done) + " of " +
                                      std::to_string(steps) +
                                      " is done, nothing is left to resume");
}

// Rank 0 chooses a step, every rank reads its own file of it, and all take it or none.
std::int64_t Checkpoints::restore_newest(Archived& state, std::vector<std::string>& notes) {
  const int rank = context_.rank(), ranks = context_.ranks();
  std::vector<std::string> damaged;
  for (std::int64_t below = kAnyStep;;) {
    const std::int64_t step =
        largest(rank == 0 ? newest_checkpoint(config_.folder, ranks, below) : 0);
    if (step == 0) return start_anew(damaged, notes);
    const std::optional<SafetensorsFile> file = read_if_whole(step);
    const std::int64_t failed = largest(file ? 0 : ranks - rank);
    if (failed == 0) {
      restore(*file, state);
      ZL_CHECK(state.steps() == step, "a checkpoint holds the step its folder names");
      notes.push_back("resumed after step " + std::to_string(step) + " from " + config_.folder);
      const std::string newer = why_not(damaged, step);
      if (!newer.empty()) notes.push_back("newer steps were passed over: " + newer);
      return step;
    }
    const auto culprit = static_cast<int>(ranks - failed);
    damaged.push_back(checkpoint_file(config_.folder, step, culprit, ranks) + " is damaged");
    below = step;
  }
}

// What keeps the steps above `step` from being resumed; empty: there are none.
std::string Checkpoints::why_not(const std::vector<std::string>& damaged, std::int64_t step) const {
  std::string text;
  for (const std::int64_t newer : checkpoint_steps(config_.folder)) {
    if (newer <= step || is_complete_checkpoint(config_.folder, newer, context_.ranks())) continue;
    text += (text.empty() ? "" : "; ") + describe_checkpoint(config_.folder, newer);
  }
  for (const std::string& file : damaged) text += (text.empty() ? "" : "; ") + file;
  return text;
}

// No step can be resumed: well where none was ever kept. Rank 0 tells.
std::int64_t Checkpoints::start_anew(const std::vector<std::string>& damaged,
                                     std::vector<std::string>& notes) const {
  if (context_.rank() != 0) return 0;
  if (checkpoint_steps(config_.folder).empty()) {
    notes.push_back(config_.folder + " holds no checkpoint yet: started with step 1");
    return 0;
  }
  throw Error(ErrorCode::invalid,
              config_.folder + ": holds no whole checkpoint of " +
                  std::to_string(context_.ranks()) + " ranks, only: " + why_not(damaged, 0) +
                  "; resume with the ranks of these, or start in another --checkpoint folder");
}

// This rank's file; nothing, and a warning why, where it cannot be read as it was written.
std::optional<SafetensorsFile> Checkpoints::read_if_whole(std::int64_t step) const {
  try {
    return read_safetensors(file_of(step));
  } catch (const Error& error) {
    log_warning(error.what());
    return std::nullopt;
  }
}

void Checkpoints::restore(const SafetensorsFile& file, Archived& state) const {
  const auto identity = file.metadata.find(kIdentity);
  if (identity == file.metadata.end() || identity->second != config_.identity) {
    throw Error(ErrorCode::invalid, file.path +
                                        ": is of another model, strategy, data or seed; resume "
                                        "with those or choose another --checkpoint folder");
  }
  Restoring archive(context_, file);
  state.archive(archive);
}

void Checkpoints::after_step(Archived& state, bool last) {
  const bool due = config_.every > 0 && state.steps() % config_.every == 0;
  if (config_.folder.empty() || (!last && !due)) return;
  Saving archive(context_);
  state.archive(archive);
  const std::string path = file_of(state.steps());
  make_checkpoint_folder(fs::path(path).parent_path());
  archive.write(path, config_.identity);
  remove_before(state.steps());
}

// This rank's files but for those of `newest` and of the kept steps before it; the last rank that
// leaves a folder removes it. Later steps are left alone: they are of what this run went back from.
void Checkpoints::remove_before(std::int64_t newest) const {
  std::size_t kept = 0;
  for (const std::int64_t step : checkpoint_steps(config_.folder)) {
    const fs::path file = file_of(step);
    if (step > newest || !fs::exists(file) || ++kept <= kKept) continue;
    std::error_code ignored;
    fs::remove(file, ignored);
    fs::remove(file.parent_path(), ignored);  // only when empty
  }
}

std::string Checkpoints::file_of(std::int64_t step) const {
  return checkpoint_file(config_.folder, step, context_.rank(), context_.ranks());
}

// Of what all ranks say.
std::int64_t Checkpoints::largest(std::int64_t mine) const {
  auto value = static_cast<std::int32_t>(mine);
  const Tensor box =
      context_.allocate(DType::i32, Shape{1}, MemoryTag::staging, {"step to resume"});
  context_.upload(StreamId::compute, box, &value);
  const Segment segment{box, box};
  context_.collective(StreamId::compute,
                      {CollectiveKind::all_reduce, ReduceOp::max, Purpose::control, {&segment, 1}});
  context_.download(StreamId::compute, &value, box);
  context_.synchronize(StreamId::compute);
  return value;
}

}  // namespace zl
