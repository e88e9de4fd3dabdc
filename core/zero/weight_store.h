// Where the weights of the compute type live, by ZeRO stage: replicated (0, 1, 2) or sharded (3).
// Ownership: owns the weights. Threads: one rank's thread.
#pragma once

#include <memory>
#include <string>

#include "core/checkpoint/state_archive.h"
#include "core/device/rank_context.h"
#include "core/model/parameter_access.h"
#include "core/model/transformer.h"
#include "core/train/strategy.h"
#include "core/zero/partition.h"

namespace zl {

class WeightStore {
 public:
  virtual ~WeightStore() = default;
  // Draws the initial weights: the same values for every stage and rank count.
  virtual void initialize(std::uint64_t seed) = 0;
  virtual void enter(int unit, Pass pass) = 0;
  virtual void leave(int unit, Pass pass) = 0;
  // [count] elements, readable between enter and leave.
  virtual TensorView weight(int parameter) = 0;
  // What this rank updates: [padded] when the optimizer is replicated (stage 0), [chunk] otherwise.
  virtual TensorView owned(int parameter) = 0;
  // After an update of the owned parts: the other ranks' parts follow.
  virtual void publish() = 0;
  // Where owned() lives. cpu: in host memory, where the copy stream fetches it. nvme: in a file,
  // and there is no owned(); a new value, ready on the host stream, is written by write_back().
  virtual Tier tier(int /*parameter*/) const { return Tier::device; }
  virtual void write_back(int /*parameter*/, const TensorView& /*value*/) {}
  // This rank's part between steps, under `name`; the streams that write weights are idle.
  virtual void archive(StateArchive& archive, int parameter, const std::string& name) {
    archive.tensor(name, owned(parameter));
  }
};

// Fills [begin, begin + view.count()) of the flattened parameter by its InitKind.
void draw_initial(RankContext& context, const ParameterSpec& spec, int parameter,
                  std::uint64_t seed, std::int64_t begin, const TensorView& view);

// draw_initial into host memory, on the compute stream: drawn by the device slice by slice, so that
// every tier starts from the same bits.
class HostDraw {
 public:
  HostDraw(RankContext& context, DType dtype);
  void operator()(const ParameterSpec& spec, int parameter, std::uint64_t seed, std::int64_t begin,
                  const TensorView& view);
  void zero(const TensorView& view);

 private:
  RankContext& context_;
  Tensor slice_;
};

std::unique_ptr<WeightStore> make_weight_store(RankContext& context, const Strategy& strategy,
                                               const ParameterTable& table,
                                               const Partition& partition,
                                               const std::vector<Transformer::Visit>& visits);

}  // namespace zl
