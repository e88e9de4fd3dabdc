#include "simulator/planner/pass_program.h"

namespace zl::sim {
namespace {

// What grows comes at the very end.
void add_end(const SeriesWork& series, std::int64_t layers, std::int64_t more,
             PassProgram& program) {
  const std::int64_t beyond = layers - series.several;
  program.add(series.last, 1, series.after.empty() ? more : 0, beyond);
  program.add(series.after, 1, more, beyond);
}

}  // namespace

PassProgram program_of(const SeriesWork& series, std::int64_t layers, std::int64_t more) {
  PassProgram program;
  if (layers <= 1) {
    program.add(series.single);
    return program;
  }
  program.add(series.before);
  program.add(series.first);
  program.add(series.middle, layers - 2);
  add_end(series, layers, more, program);
  return program;
}

PassProgram mixed_program(const SeriesWork& one, std::int64_t count, const SeriesWork& other,
                          std::int64_t layers, std::int64_t more) {
  PassProgram program;
  program.add(one.before);
  program.add(one.first);
  program.add(one.middle, count - 1);
  program.add(other.middle, layers - count - 1);
  add_end(other, layers, more, program);
  return program;
}

}  // namespace zl::sim
