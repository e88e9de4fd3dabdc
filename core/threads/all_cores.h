// Independent pieces of work on all cores of the machine.
// Ownership: nothing. Threads: blocks; the work runs on many at once, the caller's among them.
#pragma once

#include <cstddef>
#include <functional>

namespace zl {

// work(i) for each i in [0, count), whoever is free. Of those that throw, the one with the lowest
// number is thrown on when all are done, so that the outcome does not depend on the cores.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace zl
