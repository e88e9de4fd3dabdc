#include "core/threads/openmp_spin.h"

#include <unistd.h>

#include <cstdlib>

namespace zl {
namespace {

bool is_said(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool set_openmp_spin() {
  if (is_said("OMP_WAIT_POLICY") || is_said("GOMP_SPINCOUNT")) return false;
  return setenv("GOMP_SPINCOUNT", kSpinCount, 1) == 0;
}

void limit_openmp_spin(char** argv) {
  if (set_openmp_spin()) execv("/proc/self/exe", argv);
}

}  // namespace zl
