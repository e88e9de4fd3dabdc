// Rotary positions in the half-split layout.
#include <cmath>
#include <vector>

#include "backends/cpu/ops/element.h"
#include "backends/cpu/ops/parallel.h"
#include "core/ops/attention.h"

namespace zl::cpu {
namespace {

// The angles' cosines and sines of positions that follow each other. Each turns those of the one
// before, which is quicker than new ones; those of every kTurns-th are new, so that no error builds
// up and none depends on where a thread begins.
template <class A>
class Rotation {
 public:
  Rotation(const Rope& op, std::int64_t position)
      : table_(*op.table), multiplier_(op.inverse ? -op.table->multiplier : op.table->multiplier) {
    const std::size_t count = table_.frequencies.size();
    for (auto* each : {&cosines_, &sines_, &turn_cosines_, &turn_sines_}) each->resize(count);
    cosine.resize(count), sine.resize(count);
    for (std::size_t j = 0; j < count; ++j) {
      turn_cosines_[j] = std::cos(table_.frequencies[j]);
      turn_sines_[j] = std::sin(table_.frequencies[j]);
    }
    position_ = position / kTurns * kTurns;
    begin_anew();
    while (position_ < position) turn();
    narrow_all();
  }
  void next() {
    turn();
    narrow_all();
  }

  std::vector<A> cosine, sine;  // times the table's multiplier; of the inverse where that is asked

 private:
  static constexpr std::int64_t kTurns = 32;

  void begin_anew() {
    for (std::size_t j = 0; j < cosines_.size(); ++j) {
      const double angle = static_cast<double>(position_) * table_.frequencies[j];
      cosines_[j] = std::cos(angle), sines_[j] = std::sin(angle);
    }
  }
  void turn() {
    if (++position_ % kTurns == 0) return begin_anew();
    for (std::size_t j = 0; j < cosines_.size(); ++j) {
      const double x = cosines_[j], y = sines_[j];
      cosines_[j] = x * turn_cosines_[j] - y * turn_sines_[j];
      sines_[j] = y * turn_cosines_[j] + x * turn_sines_[j];
    }
  }
  void narrow_all() {
    for (std::size_t j = 0; j < cosines_.size(); ++j) {
      cosine[j] = static_cast<A>(table_.multiplier * cosines_[j]);
      sine[j] = static_cast<A>(multiplier_ * sines_[j]);
    }
  }

  const RopeTable& table_;
  double multiplier_;  // of sines
  std::int64_t position_ = 0;
  std::vector<double> cosines_, sines_, turn_cosines_, turn_sines_;  // by pair
};

template <class T>
void rotate_row(const Rotation<Arithmetic<T>>& rotation, std::int64_t heads, std::int64_t head_size,
                T* row) {
  using A = Arithmetic<T>;
  const A* __restrict cosine = rotation.cosine.data();
  const A* __restrict sine = rotation.sine.data();
  const auto half = static_cast<std::int64_t>(rotation.cosine.size());
  for (std::int64_t head = 0; head < heads; ++head) {
    T* __restrict low = row + head * head_size;
    T* __restrict high = low + half;
    for (std::int64_t j = 0; j < half; ++j) {
      const A x = widen<A>(low[j]), y = widen<A>(high[j]);
      low[j] = narrow<T>(x * cosine[j] - y * sine[j]);
      high[j] = narrow<T>(y * cosine[j] + x * sine[j]);
    }
  }
}

}  // namespace

// One thread rotates a position in every sequence, so that its angles are computed once.
void execute(const Rope& op, const ExecContext& context) {
  const AttentionShape& shape = op.shape;
  const std::int64_t width = shape.batch * (shape.heads + shape.kv_heads) * shape.head_size;
  const std::int64_t grain = rows_worth_a_thread(width, 2);
  with_float_type(op.qkv.dtype, op.kName, [&](auto type) {
    using T = decltype(type);
    parallel_for(context, shape.sequence, grain, [&](std::int64_t begin, std::int64_t end) {
      Rotation<Arithmetic<T>> rotation(op, shape.first_position + begin);
      for (std::int64_t i = begin; i < end; ++i, rotation.next()) {
        for (std::int64_t b = 0; b < shape.batch; ++b) {
          T* row = op.qkv.as<T>() + (b * shape.sequence + i) * shape.qkv_width();
          rotate_row<T>(rotation, shape.heads + shape.kv_heads, shape.head_size, row);
        }
      }
    });
  });
}

}  // namespace zl::cpu
