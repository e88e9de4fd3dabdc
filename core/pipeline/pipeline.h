// What the ranks of a pipeline do in one optimizer step: for each rank a list of forwards and
// backwards of micro-batches through stages. Pure data, a function of kind and shape; executor,
// simulator and checks (pipeline_times.h) read the same lists. Equal to the
// tables of torch.distributed.pipelining 2.15, Megatron-LM, DeepSpeed and sail-sg's zero-bubble.
//
// A model is cut into stages = ranks * chunks. Loop placement: stage s is chunk s / ranks of rank
// s % ranks. V placement (two chunks): rank r has stages r and 2 * ranks - 1 - r.
// Ownership: values. Threads: immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zl {

enum class WorkKind : std::uint8_t {
  forward,
  backward,         // both halves
  input_gradient,   // the half of a backward that the stage before waits for
  weight_gradient,  // the other half, any time after it
};

struct Work {
  WorkKind kind = WorkKind::forward;
  int micro = 0;
  int stage = 0;
  bool with_next = false;  // overlapped: it and the next of the list run side by side

  bool operator==(const Work&) const = default;
};

enum class PipelineKind : std::uint8_t {
  gpipe,           // Huang et al. 2019
  breadth_first,   // Lamy-Poirier 2023
  one_f_one_b,     // PipeDream-Flush, Narayanan et al. 2021
  interleaved,     // interleaved 1F1B, Narayanan et al. 2021
  zb_h1,           // zero bubble, Qi et al. 2024
  zb_h2,           // in the closed form of Qi et al. 2024
  interleaved_zb,  // torch's ScheduleInterleavedZeroBubble
  zb_v,            // torch's ScheduleZBVZeroBubble
  dualpipe_v,      // DeepSeek-AI's DualPipeV
};
inline constexpr int kPipelineKinds = 9;

const char* name_of(PipelineKind kind);  // "1f1b", "zb-h1"
std::optional<PipelineKind> pipeline_kind(std::string_view name);
// Whether backwards come in halves.
bool splits_backward(PipelineKind kind);
bool is_v(PipelineKind kind);

struct PipelineShape {
  int ranks = 1;
  int micro_batches = 1;
  int chunks = 1;  // of each rank: virtual stages
  int group = 0;   // interleaved: micro-batches in a row of one chunk; 0: ranks

  bool operator==(const PipelineShape&) const = default;
};

struct Pipeline {
  PipelineKind kind = PipelineKind::gpipe;
  PipelineShape shape;
  std::vector<std::vector<Work>> work;  // [rank]

  int stages() const { return shape.ranks * shape.chunks; }
  int rank_of(int stage) const;
  int chunk_of(int stage) const;
  // The stage that is chunk `chunk` of the rank.
  int stage_of(int rank, int chunk) const;
};

// Error{invalid} naming the key, the value and the nearest that would do: more than one chunk where
// the kind has one, other than two on a V, a group that the micro-batches do not fill, too few of
// them.
void check_shape(PipelineKind kind, const PipelineShape& shape);
// check_shape first.
Pipeline make_pipeline(PipelineKind kind, const PipelineShape& shape);

// "F3", "B3.1" (chunk 1), on a V "f3" (second chunk), "(F3|b1)": rank's list as the field writes
// it.
std::string to_text(const Pipeline& pipeline, int rank);

}  // namespace zl
