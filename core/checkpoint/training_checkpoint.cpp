#include "core/checkpoint/training_checkpoint.h"

#include <bit>
#include <exception>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/checkpoint/state_file.h"
#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"
#include "core/threads/failures.h"

namespace zl {
namespace {

constexpr std::size_t kKept = 2;
// What rank 0 says instead of a step, and the others before it has spoken.
constexpr std::int64_t kNoneEver = 0, kNoneUsable = -1;

std::string joined(const std::string& list, const char* between, const std::string& item) {
  return list.empty() ? item : list + between + item;
}

}  // namespace

SafetensorsFile read_rank_file(const std::string& folder, std::int64_t step, int rank, int ranks,
                               Labels labels) {
  Labels manifest = read_labelled(manifest_file(folder, step), labels).metadata;
  labels["rank"] = std::to_string(rank);
  const std::string path = checkpoint_file(folder, step, rank, ranks);
  SafetensorsFile file = read_labelled(path, labels);
  const std::string &completed_with = manifest[file_label(rank)], is = text_of(*file.written);
  if (is == completed_with) return file;
  throw Error(ErrorCode::invalid, path + ": is not what the step was completed with (" + is +
                                      ", not " + completed_with + ")");
}

Checkpoints::Checkpoints(CheckpointConfig config, RankContext& context, Communicator& world)
    : config_(std::move(config)), context_(context), world_(world) {
  if (config_.folder.empty() || context.rank() != 0) return;
  make_folders(config_.folder);
  lock_.emplace(config_.folder);
  remove_leftovers(config_.folder);
  const std::vector<std::int64_t> steps = completed_steps(config_.folder);
  if (config_.resume || steps.empty()) return;
  throw Error(ErrorCode::invalid,
              config_.folder + ": holds checkpoints already (the newest of step " +
                  std::to_string(steps.front()) +
                  "); go on from them with --resume, choose another --checkpoint folder or clear "
                  "this one: " +
                  removal_of(config_.folder));
}

std::int64_t Checkpoints::begin(Archived& state, std::int64_t steps,
                                std::vector<std::string>& notes) {
  if (config_.folder.empty() || !config_.resume) return 0;
  const std::int64_t done = restore_newest(state, notes);
  if (done > steps) {
    refuse("step " + std::to_string(done) + " is done already, and " + std::to_string(steps) +
           " are asked for; ask for as many (--steps) or choose another --checkpoint folder");
  }
  if (done == steps) notes.push_back("all " + std::to_string(steps) + " steps are done already");
  return done;
}

// Rank 0 chooses a step, every rank reads its own file of it, and all take it or none.
std::int64_t Checkpoints::restore_newest(Archived& state, std::vector<std::string>& notes) {
  const int rank = context_.rank(), ranks = context_.ranks();
  for (PassedOver passed;;) {
    const std::int64_t step = largest(rank == 0 ? newest_promising(passed) : kNoneUsable);
    if (step == kNoneUsable) refuse_all(passed);
    if (step == kNoneEver) {
      notes.push_back(config_.folder + " holds no checkpoint yet: started with step 1");
      return 0;
    }
    std::optional<SafetensorsFile> file;
    try {
      file = read_rank_file(config_.folder, step, rank, ranks, labels_of(step));
    } catch (const Error&) {  // rank 0 tells
    }
    const std::int64_t failed = largest(file ? 0 : ranks - rank);
    if (failed == 0) {
      restore_state(context_, *file, state);
      if (const auto best = file->metadata.find(kBest); best != file->metadata.end()) {
        best_ = best->second;
      }
      ZL_CHECK(state.steps() == step, "a checkpoint holds the step that its labels name");
      notes.push_back("resumed after step " + std::to_string(step) + " from " + config_.folder);
      put_aside_all(passed, notes);
      return step;
    }
    pass_over(step, why_unusable(step, static_cast<int>(ranks - failed)), passed);
  }
}

// The newest completed step, not passed over yet, whose manifest is this run's.
std::int64_t Checkpoints::newest_promising(PassedOver& passed) const {
  for (const std::int64_t step : completed_steps(config_.folder)) {
    if (!passed.empty() && step >= passed.back().first) continue;
    try {
      read_labelled(manifest_file(config_.folder, step), labels_of(step));
      return step;
    } catch (const Error& error) {
      pass_over(step, error.what(), passed);
    }
  }
  return passed.empty() ? kNoneEver : kNoneUsable;
}

void Checkpoints::pass_over(std::int64_t step, const std::string& why, PassedOver& passed) const {
  passed.emplace_back(step, why);
  if (context_.rank() == 0) log_warning("step " + std::to_string(step) + " is passed over: " + why);
}

// Where this run will write those steps anew.
void Checkpoints::put_aside_all(const PassedOver& passed, std::vector<std::string>& notes) const {
  if (context_.rank() != 0) return;
  for (const auto& [step, why] : passed) {
    notes.push_back("step " + std::to_string(step) + " was passed over and is kept as " +
                    put_aside(config_.folder, step) + ": " + why);
  }
}

void Checkpoints::refuse_all(const PassedOver& passed) const {
  std::string text;
  for (const auto& [step, why] : passed) {
    text = joined(text, "; ", "step " + std::to_string(step) + ": " + why);
  }
  refuse("no checkpoint there can be resumed: " + text +
         "; resume with what these are of, choose another --checkpoint folder or clear this one: " +
         removal_of(config_.folder));
}

// On every rank.
void Checkpoints::refuse(const std::string& why) const {
  if (context_.rank() == 0) throw Error(ErrorCode::invalid, config_.folder + ": " + why);
  follow(0);
}

// A rank that knows why leaves; the others wait for it, lest they end what it still waits in.
void Checkpoints::follow(std::int64_t rank) const {
  largest(0);
  throw RankLeft("rank " + std::to_string(rank) + " has gone on where it was to leave");
}

Labels Checkpoints::labels_of(std::int64_t step) const {
  Labels labels = config_.identity;
  labels["step"] = std::to_string(step);
  labels["ranks"] = std::to_string(context_.ranks());
  return labels;
}

// Another rank found its file unusable; for rank 0 to tell, so that it is told once.
std::string Checkpoints::why_unusable(std::int64_t step, int rank) const {
  if (context_.rank() != 0) return "";
  try {
    read_rank_file(config_.folder, step, rank, context_.ranks(), labels_of(step));
  } catch (const Error& error) {
    return error.what();
  }
  return "rank " + std::to_string(rank) + " cannot read its file, rank 0 can";
}

void Checkpoints::after_step(Archived& state, bool last) {
  const bool due = config_.every > 0 && state.steps() % config_.every == 0;
  if (config_.folder.empty() || (!last && !due)) return;
  const StateCopy copy(context_, state);
  WrittenFile mine;
  std::exception_ptr failure;
  try {
    mine = write(state.steps(), copy);
  } catch (const Error&) {
    failure = std::current_exception();
  }
  const std::vector<WrittenFile> files = tell_all(mine);
  if (failure) std::rethrow_exception(failure);
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    if (files[rank].bytes < 0) follow(static_cast<std::int64_t>(rank));
  }
  if (context_.rank() == 0) complete(state.steps(), files);
}

WrittenFile Checkpoints::write(std::int64_t step, const StateCopy& copy) const {
  Labels labels = labels_of(step);
  labels["rank"] = std::to_string(context_.rank());
  if (!best_.empty()) labels[kBest] = best_;
  make_folders(step_folder(config_.folder, step));
  return copy.write(checkpoint_file(config_.folder, step, context_.rank(), context_.ranks()),
                    labels);
}

// Later steps are left alone: they are of what this run could not put aside.
void Checkpoints::complete(std::int64_t step, const std::vector<WrittenFile>& files) const {
  Labels manifest = labels_of(step);
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    manifest[file_label(static_cast<int>(rank))] = text_of(files[rank]);
  }
  write_safetensors(manifest_file(config_.folder, step), {}, manifest);
  remove_old_steps(config_.folder, step, kKept);
}

// What every rank wrote, by rank.
std::vector<WrittenFile> Checkpoints::tell_all(const WrittenFile& mine) const {
  constexpr std::size_t kWords = 3;
  constexpr std::int64_t kLow = 0x7fffffff;
  std::vector<std::int32_t> words(kWords * static_cast<std::size_t>(context_.ranks()), INT32_MIN);
  std::int32_t* own = words.data() + kWords * static_cast<std::size_t>(context_.rank());
  own[0] = static_cast<std::int32_t>(mine.bytes >> 31);
  own[1] = static_cast<std::int32_t>(mine.bytes & kLow);
  own[2] = std::bit_cast<std::int32_t>(mine.checksum);
  words = largest(std::move(words));
  std::vector<WrittenFile> files;
  for (std::size_t i = 0; i < words.size(); i += kWords) {
    files.push_back(
        {std::int64_t{words[i]} << 31 | words[i + 1], std::bit_cast<std::uint32_t>(words[i + 2])});
  }
  return files;
}

// Of what all ranks say.
std::int64_t Checkpoints::largest(std::int64_t mine) const {
  return largest(std::vector{static_cast<std::int32_t>(mine)}).front();
}

std::vector<std::int32_t> Checkpoints::largest(std::vector<std::int32_t> mine) const {
  const Tensor box = context_.allocate(DType::i32, Shape{static_cast<std::int64_t>(mine.size())},
                                       MemoryTag::staging, {"checkpoint"});
  context_.upload(StreamId::compute, box, mine.data());
  const Segment segment{box, box};
  world_.run(StreamId::compute,
             {CollectiveKind::all_reduce, ReduceOp::max, Purpose::control, {&segment, 1}}, nullptr);
  context_.download(StreamId::compute, mine.data(), box);
  context_.synchronize(StreamId::compute);
  return mine;
}

}  // namespace zl
