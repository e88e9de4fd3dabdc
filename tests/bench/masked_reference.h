// Causal attention over a layout of blocks as its formulas have it, in double: every query against
// every key, of which those are masked that its row of blocks lacks.
// Ownership: refers to what it judges. Threads: used by one thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/ops/attention.h"
#include "tests/bench/paired.h"

namespace zl::bench {

class MaskedReference {
 public:
  // Of one sequence, every kv head of which has one head. op: after it was executed.
  MaskedReference(const AttentionBackward& op, const BlockLayout& layout)
      : op_(op), layout_(layout) {}

  // The largest error of `rows` rows, spread over the sequence, of output, lse and gradients, in
  // parts of the value (of 1, where that is more).
  double worst(std::int64_t rows) {
    for (std::int64_t n = 0; n < rows; ++n) {
      const std::int64_t row = n * (op_.shape.sequence - 1) / (rows - 1);
      for (std::int64_t head = 0; head < op_.shape.heads; ++head) {
        judge_query(head, row);
        judge_key(head, row);
      }
    }
    return worst_;
  }

 private:
  using Row = std::vector<double>;

  Row row_of(const ColumnsView& of, std::int64_t head, std::int64_t row) const {
    const std::int64_t width = op_.shape.head_size;
    Row values;
    for (std::int64_t d = 0; d < width; ++d) {
      values.push_back(value_at(of.matrix, row * of.stride() + of.first + head * width + d));
    }
    return values;
  }
  Row row_of(const TensorView& matrix, std::int64_t head, std::int64_t row) const {
    return row_of(ColumnsView{matrix, 0, matrix.columns()}, head, row);
  }
  bool sees(std::int64_t query, std::int64_t key) const {
    const auto& row = layout_.rows[static_cast<std::size_t>(query / layout_.block)];
    return key <= query && std::binary_search(row.begin(), row.end(), key / layout_.block);
  }
  static double dot(const Row& a, const Row& b) {
    double sum = 0;
    for (std::size_t d = 0; d < a.size(); ++d) sum += a[d] * b[d];
    return sum;
  }
  static void add(double factor, const Row& row, Row& to) {
    for (std::size_t d = 0; d < row.size(); ++d) to[d] += factor * row[d];
  }
  void judge(const Row& got, const Row& wanted) {
    for (std::size_t d = 0; d < got.size(); ++d) {
      const double error = std::abs(got[d] - wanted[d]) / std::max(1.0, std::abs(wanted[d]));
      worst_ =
          std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst_, error);
    }
  }

  void judge_query(std::int64_t head, std::int64_t query) {
    const Row q = row_of(op_.qkv.q, head, query), dout = row_of(op_.dout, head, query);
    const Row zeros(q.size());
    std::vector<std::int64_t> keys;
    Row scores;
    for (std::int64_t key = 0; key < op_.shape.sequence; ++key) {
      if (!sees(query, key)) continue;
      keys.push_back(key);
      scores.push_back(op_.scale * dot(q, row_of(op_.qkv.k, head, key)));
    }
    const double peak = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - peak);
    Row out = zeros, dq = zeros;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      add(scores[i] / sum, row_of(op_.qkv.v, head, keys[i]), out);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const double dscore = dot(dout, row_of(op_.qkv.v, head, keys[i])) - dot(dout, out);
      add(op_.scale * scores[i] / sum * dscore, row_of(op_.qkv.k, head, keys[i]), dq);
    }
    judge({lse(head, query)}, {peak + std::log(sum)});
    judge(row_of(op_.out, head, query), out);
    judge(row_of(op_.dqkv.q, head, query), dq);
  }

  // With the outputs and the lse that were computed, which judge_query judges.
  void judge_key(std::int64_t head, std::int64_t key) {
    const Row k = row_of(op_.qkv.k, head, key), v = row_of(op_.qkv.v, head, key);
    Row dk(k.size()), dv(k.size());
    for (std::int64_t query = key; query < op_.shape.sequence; ++query) {
      if (!sees(query, key)) continue;
      const Row q = row_of(op_.qkv.q, head, query), dout = row_of(op_.dout, head, query);
      const double probability = std::exp(op_.scale * dot(q, k) - lse(head, query));
      const double dscore = dot(dout, v) - dot(dout, row_of(op_.out, head, query));
      add(probability, dout, dv);
      add(op_.scale * probability * dscore, q, dk);
    }
    judge(row_of(op_.dqkv.k, head, key), dk);
    judge(row_of(op_.dqkv.v, head, key), dv);
  }

  double lse(std::int64_t head, std::int64_t query) const {
    return value_at(op_.lse, head * op_.shape.sequence + query);
  }

  const AttentionBackward op_;
  const BlockLayout& layout_;
  double worst_ = 0;
};

}  // namespace zl::bench
