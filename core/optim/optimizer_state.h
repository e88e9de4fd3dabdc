// What an optimizer keeps of the parameters that it updates: fp32 masters (where the weights are
// 16-bit), moments, and where in them each range lies. No algorithm is in here.
// Ownership: owns its tensors, unless they were given. Threads: one rank's thread.
#pragma once

#include <string>
#include <vector>

#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"

namespace zl {

// A contiguous range to update: `weights` in the compute type, its reduced gradient.
struct UpdateRange {
  TensorView weights, gradient;
  int parameter = 0;       // in the partition
  std::int64_t begin = 0;  // index of the first element in the parameter
  int number = 0;          // of the parameter in the whole model: keys its random numbers
};

// State tensors of n elements each; empty where the optimizer has none.
struct StateViews {
  TensorView master, first, second;

  bool empty() const { return master.empty() && first.empty() && second.empty(); }
};

// What an algorithm needs for each element, and how it updates them.
struct StateNeeds {
  const char* first = "first moment";    // its name in the books; null: none
  const char* second = "second moment";  // likewise
  bool own_masters = false;              // even where the weights are fp32
  bool merge = true;                     // contiguous neighbours are updated by one op
};

class OptimizerState {
 public:
  // What one op updates: a range, or contiguous ones. `copy`: the weights where param is a master.
  struct Piece {
    TensorView param, gradient, copy;
    std::int64_t offset = 0;  // into the state
    std::size_t range = 0;    // the first it is made of

    std::int64_t count() const { return param.count(); }
    TensorView of(const TensorView& state) const { return state.flat(offset, count()); }
    // The gradient that lies this many elements behind the range's.
    TensorView gradient_behind(std::int64_t shift) const;
  };

  // Ranges keep their order; state is laid out in that order. Allocates it on the device, zeros,
  // unless it is given. replicated: every rank updates everything (stage 0).
  OptimizerState(RankContext& context, std::vector<UpdateRange> ranges, bool replicated,
                 const StateNeeds& needs, const StateViews& given = {});
  OptimizerState(const OptimizerState&) = delete;
  OptimizerState& operator=(const OptimizerState&) = delete;

  const std::vector<UpdateRange>& ranges() const { return ranges_; }
  const std::vector<Piece>& pieces() const { return pieces_; }
  std::int64_t elements() const { return elements_; }
  bool replicated() const { return replicated_; }

  bool has_masters() const { return !views_.master.empty(); }
  // The fp32 values of a range: its master, or the fp32 weights themselves.
  TensorView master(std::size_t range) const;
  const StateViews& views() const { return views_; }
  std::int64_t offset(std::size_t range) const { return offsets_[range]; }
  // A range of a tensor that is laid out as the state.
  TensorView part(const TensorView& state, std::size_t range) const;
  // One more tensor like the state's, zeros.
  Tensor allocate(const char* what) const;
  void drop_first_moment();

  // Over the ranks' parts of the state; nothing where every rank has the whole.
  void reduce(const TensorView& values, ReduceOp op) const;

  std::int64_t steps() const { return steps_; }  // taken or skipped so far
  void count_step() { ++steps_; }

  // What is its own: tensors that were given are the giver's.
  void archive(StateArchive& archive, const std::string& prefix);

 private:
  void make_pieces(bool merge);

  RankContext& context_;
  std::vector<UpdateRange> ranges_;
  bool replicated_;
  std::vector<std::int64_t> offsets_;  // of each range in the state
  std::vector<Piece> pieces_;
  Tensor masters_, first_, second_;  // where the state is its own
  StateViews views_;
  std::int64_t elements_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace zl
