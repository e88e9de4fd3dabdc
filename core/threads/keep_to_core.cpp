#include "core/threads/keep_to_core.h"

#include <sched.h>

namespace zl {

void keep_to_core(int rank, int ranks) {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return;
  const int count = CPU_COUNT(&cores);
  if (ranks <= count || ranks % count != 0) return;
  int before = rank % count;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores) || before-- > 0) continue;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    sched_setaffinity(0, sizeof(cores), &cores);
    return;
  }
}

}  // namespace zl
