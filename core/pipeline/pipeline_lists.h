// One rank's list of each kind of schedule, for make_pipeline. The shape was checked.
#pragma once

#include "core/pipeline/pipeline.h"

namespace zl {

// Micro-batch and chunk in order of forward: groups of micro-batches, chunk by chunk; the last
// group may be shorter.
struct VirtualMicroBatch {
  int micro = 0, chunk = 0;
};
std::vector<VirtualMicroBatch> virtual_order(const PipelineShape& shape, int group);

std::vector<Work> gpipe_list(const Pipeline& pipeline, int rank);
std::vector<Work> breadth_first_list(const Pipeline& pipeline, int rank);
// 1F1B, with one chunk or interleaved.
std::vector<Work> one_f_one_b_list(const Pipeline& pipeline, int rank);
// ZB-H1, ZB-H2 and interleaved ZB: the weights' half of a backward `delay` backwards later.
std::vector<Work> split_backward_list(const Pipeline& pipeline, int rank);
std::vector<Work> zb_v_list(const Pipeline& pipeline, int rank);
std::vector<Work> dualpipe_v_list(const Pipeline& pipeline, int rank);

}  // namespace zl
