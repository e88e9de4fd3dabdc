// Which steps a recording takes, and which of them stand for the others: every step after the
// second of a kind is alike. Ownership: a value. Threads: one rank's thread.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace zl {

class StepPlan {
 public:
  // Takes at most per_kind steps of each kind after each kind; 0: all.
  StepPlan(std::int64_t per_kind, int first_kind) : per_kind_(per_kind), before_(first_kind) {}

  // Whether the coming step is to be taken.
  bool takes(std::int64_t step, int kind) {
    Taken& like = taken_[{std::exchange(before_, kind), kind}];
    if (per_kind_ > 0) like_.push_back(&like);
    if (per_kind_ > 0 && like.count == per_kind_) return false;
    ++like.count;
    like.last = step;
    return true;
  }
  // The step that stands for the newest.
  std::int64_t stand_in() const { return like_.back()->last; }
  std::vector<std::int64_t> stand_ins() const {
    std::vector<std::int64_t> steps;
    for (const Taken* like : like_) steps.push_back(like->last);
    return steps;
  }

 private:
  struct Taken {
    std::int64_t count = 0, last = 0;
  };
  std::int64_t per_kind_;
  int before_;
  std::map<std::pair<int, int>, Taken> taken_;  // by the kind before and the kind
  std::vector<const Taken*> like_;              // per step, where some are not taken
};

}  // namespace zl
