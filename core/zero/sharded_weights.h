// ZeRO stage 3: every rank holds its chunk of each weight; a unit's weights are all-gathered before
// its forward and before its backward, ahead of time on the communication stream (prefetch), and
// dropped after. Small parameters may stay gathered (persistent); backwards may gather from a small
// group (hpZ). After Rajbhandari et al. 2020 and
// DeepSpeed's partitioned parameter coordinator; the granularity of fetch, prefetch and release is
// the unit. Ownership: owns the shards and the gathered weights. Threads: one rank's thread.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "core/offload/weight_files.h"
#include "core/zero/secondary_shards.h"
#include "core/zero/weight_store.h"

namespace zl {

class ShardedWeights : public WeightStore {
 public:
  ShardedWeights(RankContext& context, const StoreConfig& config, const ParameterTable& table,
                 const Partition& partition, const std::vector<Visit>& visits);

  void initialize(const InitialWeights& initial) override;
  void follow(const std::vector<Visit>& visits) override;
  void enter(int unit, Pass pass) override;
  void leave(int unit, Pass pass) override;
  TensorView weight(int parameter) override;
  TensorView owned(int parameter) override;
  void gather_updated() override;
  Tier tier(int parameter) const override { return tiers_[parameter]; }
  void archive(StateArchive& archive, int parameter, const std::string& name) override;
  void write_back(int parameter, const TensorView& value) override {
    files_->write(parameter, value);
  }

 private:
  // Weights gathered by one collective, freed together.
  struct Gathered {
    Tensor storage;
    std::vector<int> parameters;
    std::int64_t elements = 0;
    Tensor wire;  // quantized chunks, until it is readable
    EventId event = -1;
    bool readable = false;  // the compute stream has waited for it
  };

  std::vector<int> needed_by(const Visit& visit) const;
  void place();
  void choose_persistent();
  void start_gather(std::size_t visit);
  void gather(StreamId stream, std::size_t visit, Gathered& gathered);
  void prefetch();
  // What a gather of these reads and writes; a chunk on the host is first copied to its place.
  std::vector<Segment> bring(StreamId stream, const std::vector<int>& parameters);
  bool used_soon(std::size_t first, const Gathered& gathered) const;
  bool is_dropped_before(std::size_t visit, const Gathered& gathered) const;
  void release(std::list<Gathered>::iterator gathered);
  bool reads(std::size_t visit, const Gathered& gathered) const;

  RankContext& context_;
  const StoreConfig config_;
  const ParameterTable& table_;
  const Partition& partition_;
  std::vector<Tier> tiers_;  // by parameter
  Tensor shards_, host_shards_;
  std::unique_ptr<WeightFiles> files_;              // null: none is
  std::vector<std::vector<int>> visit_parameters_;  // per visit, without persistent ones
  std::vector<std::int64_t> visit_elements_;
  std::vector<Visit> visits_;
  std::size_t next_visit_ = 0;     // the visit that enter() must name
  std::size_t next_prefetch_ = 0;  // the first visit not yet gathered ahead
  std::vector<int> persistent_;
  std::vector<bool> is_persistent_;
  Tensor persistent_storage_;
  std::optional<SecondaryShards> secondary_;
  std::vector<TensorView> live_;  // per parameter: its gathered weights; empty: not gathered
  std::list<Gathered> gathered_;
  std::int64_t live_elements_ = 0, ahead_elements_ = 0;
};

}  // namespace zl
