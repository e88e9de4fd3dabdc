// How long OpenMP's threads spin before they sleep, of the whole process.
// Ownership: the environment. Threads: before the program starts any.
#pragma once

namespace zl {

// Whether the environment leaves it to the library: OMP_WAIT_POLICY and GOMP_SPINCOUNT are not set,
// or empty. Then it is set to kSpinCount.
//
// GNU's library has threads spin for milliseconds between two loops. Where another program wants
// the core, the loop that comes next waits until the scheduler takes it from the one that spins.
inline constexpr const char* kSpinCount = "1000";
bool set_openmp_spin();

// Sets it, and starts the program anew with the same arguments where that changed anything: the
// library reads the environment when it is loaded. Goes on where the system refuses to.
void limit_openmp_spin(char** argv);

}  // namespace zl
