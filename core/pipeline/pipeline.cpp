#include "core/pipeline/pipeline.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/pipeline/pipeline_lists.h"

namespace zl {
namespace {

struct KindFacts {
  const char* name;
  bool splits, v;
  std::vector<Work> (*list)(const Pipeline& pipeline, int rank);
};

const KindFacts& facts(PipelineKind kind) {
  static constexpr std::array<KindFacts, kPipelineKinds> kFacts{{
      {"gpipe", false, false, gpipe_list},
      {"breadth-first", false, false, breadth_first_list},
      {"1f1b", false, false, one_f_one_b_list},
      {"interleaved", false, false, one_f_one_b_list},
      {"zb-h1", true, false, split_backward_list},
      {"zb-h2", true, false, split_backward_list},
      {"interleaved-zb", true, false, split_backward_list},
      {"zb-v", true, true, zb_v_list},
      {"dualpipe-v", true, true, dualpipe_v_list},
  }};
  return kFacts[static_cast<std::size_t>(kind)];
}

[[noreturn]] void refuse(PipelineKind kind, const std::string& what) {
  throw Error(ErrorCode::invalid, std::string("parallel.schedule: ") + name_of(kind) + " " + what);
}

void check_chunks(PipelineKind kind, int chunks) {
  const std::string given = "parallel.virtual_stages is " + std::to_string(chunks);
  const bool many = kind == PipelineKind::breadth_first || kind == PipelineKind::interleaved ||
                    kind == PipelineKind::interleaved_zb;
  if (is_v(kind) && chunks != 2) refuse(kind, "needs 2 virtual stages, " + given + "; set it to 2");
  if (!is_v(kind) && !many && chunks != 1) {
    refuse(kind, "has one stage a rank, " + given + "; set it to 1, or use interleaved");
  }
}

// Megatron-LM: a group lies between ranks and micro-batches, and the last one is not shorter than
// the ranks.
void check_group(PipelineKind kind, const PipelineShape& shape) {
  const int micros = shape.micro_batches;
  const int group = shape.group == 0 ? shape.ranks : shape.group;
  if (group < shape.ranks || group > micros) {
    refuse(kind, "works on groups of " + std::to_string(group) + " micro-batches, which must be " +
                     std::to_string(shape.ranks) + " (the ranks) to " + std::to_string(micros) +
                     " (the micro-batches); use at least " + std::to_string(shape.ranks) +
                     " micro-batches");
  }
  const int rest = micros % group;
  if (rest != 0 && rest < shape.ranks) {
    refuse(kind, std::to_string(micros) + " micro-batches leave a last group of " +
                     std::to_string(rest) + ", fewer than the " + std::to_string(shape.ranks) +
                     " ranks; use " + std::to_string(micros - rest) + " or " +
                     std::to_string(micros - rest + group) + " micro-batches");
  }
}

void check_micro_batches(PipelineKind kind, const PipelineShape& shape) {
  const int micros = shape.micro_batches, ranks = shape.ranks;
  if (kind == PipelineKind::interleaved_zb && micros % ranks != 0) {
    const int below = std::max(ranks, micros - micros % ranks);
    refuse(kind, "needs a multiple of " + std::to_string(ranks) + " micro-batches, there are " +
                     std::to_string(micros) + "; use " + std::to_string(below) + " or " +
                     std::to_string(below + ranks));
  }
  if (kind == PipelineKind::dualpipe_v && micros < 2 * ranks) {
    refuse(kind, "needs two micro-batches for each of its " + std::to_string(ranks) +
                     " ranks, there are " + std::to_string(micros) + "; use at least " +
                     std::to_string(2 * ranks));
  }
}

std::string to_text(const Pipeline& pipeline, const Work& work) {
  constexpr std::array<char, 4> kLetters{'F', 'B', 'I', 'W'};
  constexpr char kLowerCase = 'a' - 'A';
  char letter = kLetters[static_cast<std::size_t>(work.kind)];
  const int chunk = pipeline.chunk_of(work.stage);
  if (is_v(pipeline.kind) && chunk == 1) letter = static_cast<char>(letter + kLowerCase);
  const std::string text = letter + std::to_string(work.micro);
  const bool numbered = !is_v(pipeline.kind) && pipeline.shape.chunks > 1;
  return numbered ? text + "." + std::to_string(chunk) : text;
}

}  // namespace

const char* name_of(PipelineKind kind) { return facts(kind).name; }

std::optional<PipelineKind> pipeline_kind(std::string_view name) {
  for (int i = 0; i < kPipelineKinds; ++i) {
    const auto kind = static_cast<PipelineKind>(i);
    if (name == name_of(kind)) return kind;
  }
  return std::nullopt;
}

bool splits_backward(PipelineKind kind) { return facts(kind).splits; }
bool is_v(PipelineKind kind) { return facts(kind).v; }

int Pipeline::chunk_of(int stage) const { return stage / shape.ranks; }

int Pipeline::rank_of(int stage) const {
  return is_v(kind) && stage >= shape.ranks ? stages() - 1 - stage : stage % shape.ranks;
}

int Pipeline::stage_of(int rank, int chunk) const {
  return is_v(kind) && chunk == 1 ? stages() - 1 - rank : chunk * shape.ranks + rank;
}

void check_shape(PipelineKind kind, const PipelineShape& shape) {
  const auto at_least_one = [&](const char* key, int value) {
    if (value < 1) {
      throw Error(ErrorCode::invalid, std::string(key) + ": " + std::to_string(value) +
                                          " is not positive; use 1 or more");
    }
  };
  at_least_one("parallel.pipeline", shape.ranks);
  at_least_one("gradient_accumulation", shape.micro_batches);
  at_least_one("parallel.virtual_stages", shape.chunks);
  check_chunks(kind, shape.chunks);
  if (kind == PipelineKind::interleaved && shape.chunks > 1) check_group(kind, shape);
  check_micro_batches(kind, shape);
}

Pipeline make_pipeline(PipelineKind kind, const PipelineShape& shape) {
  check_shape(kind, shape);
  Pipeline pipeline{.kind = kind, .shape = shape, .work = {}};
  for (int rank = 0; rank < shape.ranks; ++rank) {
    pipeline.work.push_back(facts(kind).list(pipeline, rank));
  }
  return pipeline;
}

std::string to_text(const Pipeline& pipeline, int rank) {
  std::string text;
  bool within = false;
  for (const Work& work : pipeline.work[rank]) {
    if (!text.empty() && !within) text += ' ';
    if (work.with_next) text += '(';
    text += to_text(pipeline, work);
    if (within) text += ')';
    if (work.with_next) text += '|';
    within = work.with_next;
  }
  return text;
}

}  // namespace zl
