#include "scenarios/run/recording.h"

namespace zl {

std::vector<sim::RankTrace> rank_traces(const Recording& recording) {
  std::vector<sim::RankTrace> traces{{&recording.trace, recording.ranks.ranks}};
  for (const ClassRecording& other : recording.others) {
    traces.push_back({&other.trace, other.ranks.ranks});
  }
  return traces;
}

}  // namespace zl
