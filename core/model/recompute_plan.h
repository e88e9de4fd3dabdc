// Which activations live: the rules of activation recomputation (Chen et al. 2016; Korthikanti et
// al. 2023). Ownership: a value. Threads: immutable.
#pragma once

#include <vector>

#include "core/model/recompute_config.h"

namespace zl {

class RecomputePlan {
 public:
  // stage: of a pipeline, which has so many layers.
  RecomputePlan(const RecomputeConfig& config, int layers, int stage = 0);

  // Blocks are recomputed in groups [begin, end): only the input of the group is kept. A group of
  // one block is the classic "full" recomputation; every_k makes groups of k.
  struct Group {
    int begin = 0, end = 0;
    bool recomputed = false;
  };
  const std::vector<Group>& groups() const { return groups_; }
  bool drop_attention() const { return drop_attention_; }
  bool drop_activation() const { return drop_activation_; }
  // Of recomputed groups, beside the input.
  bool keeps_attention() const { return keeps_attention_; }

 private:
  std::vector<Group> groups_;
  bool drop_attention_ = false, drop_activation_ = false, keeps_attention_ = false;
};

}  // namespace zl
