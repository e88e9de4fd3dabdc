// Which cores a test may run on. Ownership: values. Threads: of the calling one.
#pragma once

#include <sched.h>

#include <vector>

namespace zl::test {

// Cores that the calling thread may run on; none where the system does not say.
inline std::vector<int> own_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace zl::test
