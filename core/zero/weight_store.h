// Where the weights of the compute type live, by ZeRO stage: replicated (0, 1, 2) or sharded (3).
// Ownership: owns the weights. Threads: one rank's thread.
#pragma once

#include <memory>
#include <string>

#include "core/model/initial_weights.h"
#include "core/model/parameter_access.h"
#include "core/offload/updated_weights.h"
#include "core/parallel/partition.h"
#include "core/rank/rank_context.h"
#include "core/rank/state_archive.h"
#include "core/zero/zero_config.h"

namespace zl {

class WeightStore : public UpdatedWeights {
 public:
  // The same values for every stage and rank count.
  virtual void initialize(const InitialWeights& initial) = 0;
  // The order of the visits to come, over and over; between micro-batches only.
  virtual void follow(const std::vector<Visit>& /*visits*/) {}
  virtual void enter(int unit, Pass pass) = 0;
  virtual void leave(int unit, Pass pass) = 0;
  // [count] elements, readable between enter and leave.
  virtual TensorView weight(int parameter) = 0;
  // After an update of the owned parts: the other ranks' parts follow.
  virtual void gather_updated() = 0;
  // This rank's part between steps, under `name`; the streams that write weights are idle.
  virtual void archive(StateArchive& archive, int parameter, const std::string& name) {
    archive.tensor(name, owned(parameter));
  }
};

std::unique_ptr<WeightStore> make_weight_store(RankContext& context, const StoreConfig& config,
                                               const ParameterTable& table,
                                               const Partition& partition,
                                               const std::vector<Visit>& visits);

}  // namespace zl
