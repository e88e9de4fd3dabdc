// The schedules on a V, where a rank's first chunk lies on the way down and its second on the way
// back: here a is the first, b the second.
#include <algorithm>
#include <array>
#include <deque>

#include "core/pipeline/pipeline_lists.h"

namespace zl {
namespace {

constexpr int kFirst = 0, kSecond = 1;

// Writes a rank's list; the micro-batches of each kind of work and chunk come in their order.
class VList {
 public:
  VList(const Pipeline& pipeline, int rank) : pipeline_(pipeline), rank_(rank) {}

  int count(WorkKind kind, int chunk) const { return counts_[slot(kind)][chunk]; }
  Work& put(WorkKind kind, int chunk) {
    return list_.emplace_back(
        Work{kind, counts_[slot(kind)][chunk]++, pipeline_.stage_of(rank_, chunk)});
  }
  void put(const Work& work) { list_.push_back(work); }
  std::vector<Work> take() { return std::move(list_); }

 private:
  // Whole backwards and first halves are counted together.
  static std::size_t slot(WorkKind kind) {
    return static_cast<std::size_t>(kind == WorkKind::backward ? WorkKind::input_gradient : kind);
  }

  const Pipeline& pipeline_;
  int rank_;
  std::array<std::array<int, 2>, 4> counts_{};
  std::vector<Work> list_;
};

template <class Step>
void times(int count, const Step& step) {
  for (int i = 0; i < count; ++i) step(i);
}

// DualPipeV's list: weights' halves wait in line.
class DualPipeList {
 public:
  DualPipeList(const Pipeline& pipeline, int rank) : list_(pipeline, rank) {}

  void forward(int chunk) { list_.put(WorkKind::forward, chunk); }
  void backward(int chunk) { list_.put(WorkKind::backward, chunk); }
  void input_gradient(int chunk) {
    Work weights = list_.put(WorkKind::input_gradient, chunk);
    weights.kind = WorkKind::weight_gradient;
    waiting_.push_back(weights);
  }
  void weight_gradient() {
    if (waiting_.empty()) return;
    list_.put(waiting_.front());
    waiting_.pop_front();
  }
  // A forward of one chunk beside a backward of the other.
  void both(int forward_of, int backward_of) {
    list_.put(WorkKind::forward, forward_of).with_next = true;
    backward(backward_of);
  }
  bool waits() const { return !waiting_.empty(); }
  std::vector<Work> take() { return list_.take(); }

 private:
  VList list_;
  std::deque<Work> waiting_;
};

// From where on the last backwards come in halves: the middle of rank + 1 pairs, before its second
// chunk on odd ranks, before its first on even ones. Returns whether the halves have begun.
bool cool_down(DualPipeList& list, int rank) {
  bool halves = false;
  const auto one = [&](int chunk) {
    if (halves) return list.input_gradient(chunk);
    list.backward(chunk);
  };
  times(rank + 1, [&](int k) {
    const bool middle = k == (rank + 1) / 2, odd = rank % 2 == 1;
    if (middle && odd) halves = true;
    one(kSecond);
    if (middle && !odd) halves = true;
    one(kFirst);
  });
  return halves;
}

}  // namespace

// Written for at least 2 * ranks - 1 micro-batches; of fewer, those that are too many are left out.
std::vector<Work> zb_v_list(const Pipeline& pipeline, int rank) {
  using enum WorkKind;
  const int ranks = pipeline.shape.ranks;
  const int micros = std::max(pipeline.shape.micro_batches, 2 * ranks - 1);
  VList list(pipeline, rank);
  const auto whole = [&](int chunk) {
    list.put(input_gradient, chunk);
    list.put(weight_gradient, chunk);
  };
  times(2 * (ranks - rank) - 1, [&](int) { list.put(forward, kFirst); });
  times(rank, [&](int) {
    list.put(forward, kSecond);
    list.put(forward, kFirst);
  });
  times(ranks - rank, [&](int) {
    list.put(forward, kSecond);
    whole(kSecond);
  });
  while (list.count(forward, kFirst) < micros ||
         list.count(forward, kSecond) < list.count(forward, kFirst)) {
    if (list.count(forward, kFirst) < micros) list.put(forward, kFirst);
    whole(kFirst);
    list.put(forward, kSecond);
    whole(kSecond);
  }
  times(rank, [&](int) {
    list.put(input_gradient, kFirst);
    list.put(input_gradient, kSecond);
  });
  times(ranks - rank, [&](int) { whole(kFirst); });
  while (list.count(weight_gradient, kSecond) < micros) list.put(weight_gradient, kSecond);
  while (list.count(weight_gradient, kFirst) < micros) list.put(weight_gradient, kFirst);
  std::vector<Work> work = list.take();
  std::erase_if(work, [&](const Work& w) { return w.micro >= pipeline.shape.micro_batches; });
  return work;
}

std::vector<Work> dualpipe_v_list(const Pipeline& pipeline, int rank) {
  const int ranks = pipeline.shape.ranks, behind = ranks - 1 - rank;
  DualPipeList list(pipeline, rank);
  times(2 * behind, [&](int) { list.forward(kFirst); });
  times(rank + 1, [&](int) {
    list.forward(kFirst);
    list.forward(kSecond);
  });
  times(behind, [&](int) {
    list.input_gradient(kSecond);
    list.weight_gradient();
    list.forward(kSecond);
  });
  times(pipeline.shape.micro_batches - 2 * ranks + rank + 1, [&](int k) {
    if (k == 0 && behind == 0) {  // its gradient needs the forward that just ended
      list.forward(kFirst);
      list.backward(kSecond);
    } else {
      list.both(kFirst, kSecond);
    }
    list.both(kSecond, kFirst);
  });
  times(behind, [&](int) {
    list.backward(kSecond);
    list.both(kSecond, kFirst);
  });
  const bool halves = cool_down(list, rank);
  times(behind, [&](int) {
    list.weight_gradient();
    if (halves) return list.input_gradient(kFirst);
    list.backward(kFirst);
  });
  while (list.waits()) list.weight_gradient();
  return list.take();
}

}  // namespace zl
