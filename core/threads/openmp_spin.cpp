#include "core/threads/openmp_spin.h"

#include <unistd.h>

#include <cstdlib>

namespace zl {

bool set_openmp_spin() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return false;
  return std::getenv("GOMP_SPINCOUNT") == nullptr && setenv("GOMP_SPINCOUNT", kSpinCount, 1) == 0;
}

void limit_openmp_spin(char** argv) {
  if (set_openmp_spin()) execv("/proc/self/exe", argv);
}

}  // namespace zl
