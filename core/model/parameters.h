// The parameters of a model: names, shapes, initialisation, and which unit owns each.
// Ownership: values. Threads: immutable after construction.
#pragma once

#include <string>
#include <vector>

#include "core/base/shape.h"
#include "core/model/model_config.h"
#include "core/parallel/tensor_shard.h"

namespace zl {

enum class InitKind : std::uint8_t { normal, ones, zeros };

struct ParameterSpec {
  std::string name;
  Shape shape;
  int unit = 0;  // 0 the embedding, 1..layers the blocks, layers + 1 the final norm and head
  InitKind init = InitKind::normal;
  double std = 0;
  int number = 0;  // in the whole model: keys its random numbers

  // Of a parameter cut over a tensor group: which rows of the whole the first ones of this part
  // are (what they leave is padding), and which of its columns.
  struct Rows {
    std::int64_t first = 0, count = 0;
  };
  std::vector<Rows> rows = {};                 // empty: all
  std::int64_t column = 0, whole_columns = 0;  // whole_columns 0: all
  // Ranks of the group have copies of the rest: elements whose gradient this rank counts in norms,
  // -1: all; whether each rank has only a part of the gradient, of all or of the last `copied`
  // elements.
  std::int64_t counted = -1, copied = 0;
  bool summed = false;

  std::int64_t count() const { return shape.count(); }
  std::int64_t counted_elements() const { return counted < 0 ? count() : counted; }
  // The element of the whole parameter that element i is; -1: padding.
  std::int64_t place(std::int64_t i) const;
  // How many elements from i on lie together in the whole parameter, or are padding.
  std::int64_t run(std::int64_t i) const;
};

// Indices into ParameterTable::specs; -1: the model has no such parameter.
struct BlockParameters {
  int norm1_weight, norm1_bias, qkv_weight, qkv_bias, q_norm_weight, k_norm_weight;
  int out_weight, out_bias;
  int norm2_weight, norm2_bias, up_weight, up_bias, down_weight, down_bias;
};

// An encoder of masked tokens has dense, norm and head; one of labels dense and head.
// Linear weights are [out_features, in_features]. qkv stacks q, k and v heads; where the MLP is
// gated `up` stacks gate and up.
struct ParameterTable {
  // shard: the part of one rank of a tensor group.
  explicit ParameterTable(const ModelConfig& config, const TensorShard& shard = {});

  std::vector<ParameterSpec> specs;
  std::vector<BlockParameters> blocks;
  int token_embedding = -1, position_embedding = -1, segment_embedding = -1;
  int embedding_norm_weight = -1, embedding_norm_bias = -1;  // an encoder's
  int dense_weight = -1, dense_bias = -1;  // of an encoder's head: what pools, or goes before norm
  int final_norm_weight = -1, final_norm_bias = -1;
  int head = -1;  // equal to token_embedding when tied; of labels: [labels, hidden]
  int head_bias = -1;

  // The parameters of some units alone, as a rank of a pipeline has them: indices anew, -1 for
  // those of other units. A tied head without the embedding, or with copies_head, has a copy of the
  // weight, "head.tied", its last parameter.
  ParameterTable part(const std::vector<bool>& has_unit, bool copies_head = false) const;

  int units() const { return static_cast<int>(blocks.size()) + 2; }
  int head_unit() const { return units() - 1; }
  bool tied() const { return head >= 0 && head == token_embedding; }
  // How many ranks of the tensor group, one after the other, hold the same kv heads.
  int kv_copies() const { return kv_copies_; }
  std::int64_t count() const;
  std::vector<std::int64_t> counts() const;  // elements, by parameter: what a Partition cuts

 private:
  int kv_copies_ = 1;

  int add(const std::string& name, const Shape& shape, int unit, InitKind init, double std = 0);
  BlockParameters add_block(const ModelConfig& config, int layer);
  void add_embeddings(const ModelConfig& config);
  void add_head(const ModelConfig& config);
  void add_label_head(const ModelConfig& config);
  void cut(const ModelConfig& whole, const ModelConfig& part, const TensorShard& shard);
  void cut_attention(const BlockParameters& block, const ModelConfig& whole,
                     const ModelConfig& part, const TensorShard& shard);
};

}  // namespace zl
