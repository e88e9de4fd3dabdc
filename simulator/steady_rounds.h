// When all classes of ranks do the same round over and over, each time as much later: the rounds to
// come need not be laid out. The times of an event follow from those of its own class before and
// from messages of others; where in all classes more rounds than messages are under way were
// shifted by one period, the next are, by induction.
// Ownership: a value. Threads: used by one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace zl::sim {

class SteadyRounds {
 public:
  struct LeftOut {
    std::int64_t rounds = 0, period = 0;
  };

  explicit SteadyRounds(std::size_t classes) : classes_(classes) {}

  // Class `self` has `left` rounds to come after the one that it begins.
  void begin(std::size_t self, std::int64_t left) { classes_[self] = {.left = left}; }
  // A round of the class ended, shifted by `period` against the one before; nullopt: not as a
  // whole.
  void end_round(std::size_t self, std::optional<std::int64_t> period) {
    Class& own = classes_[self];
    own.rounds = period == own.period ? own.rounds + 1 : 1;
    own.period = period;
  }
  // How many of the rounds to come class `self`, at the end of one, can leave out. Equal for all
  // classes; decided once all are ready. under_way: the most messages from one class to another.
  template <class UnderWay>
  LeftOut leave_out(std::size_t self, const UnderWay& under_way) {
    if (classes_[self].agreed == 0 && are_periodic() && are_long(under_way())) agree();
    Class& own = classes_[self];
    const LeftOut out{own.agreed, own.period.value_or(0)};
    own.left -= own.agreed;
    own.agreed = 0;
    return out;
  }
  // The class begins another of its rounds. Whether there is one.
  bool next(std::size_t self) { return classes_[self].left-- > 0; }

 private:
  // Of a round, what the one before it left may be waited for so many later.
  static constexpr std::int64_t kHistory = 10;

  struct Class {
    std::int64_t left = -1;   // rounds to begin; negative: none
    std::int64_t rounds = 0;  // in a row with
    std::optional<std::int64_t> period = {};
    std::int64_t agreed = 0;  // to be left out at the end of the round under way
  };

  bool are_periodic() const {
    const std::optional<std::int64_t> period = classes_.front().period;
    return period && std::ranges::all_of(classes_, [&](const Class& each) {
             return each.left > 0 && each.period == period && each.rounds > kHistory &&
                    each.agreed == 0;
           });
  }
  bool are_long(std::int64_t under_way) const {
    return std::ranges::all_of(
        classes_, [&](const Class& each) { return each.rounds > kHistory + under_way; });
  }
  void agree() {
    const auto least = std::ranges::min_element(classes_, {}, &Class::left);
    const std::int64_t rounds = least->left;
    for (Class& each : classes_) each.agreed = rounds;
  }

  std::vector<Class> classes_;
};

}  // namespace zl::sim
