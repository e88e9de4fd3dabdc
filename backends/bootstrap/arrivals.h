// Which processes of a job have come to a point where all of them meet, as far as one node can see:
// each leaves a mark there, a name in the kernel (Linux's abstract socket addresses) that ends with
// the process. No file is made.
// Ownership: a mark is its process's until that ends. Threads: any.
#pragma once

#include <set>
#include <string>

#include "backends/bootstrap/launch.h"

namespace zl {

// Leaves this process's mark at the point, once; none where the launch has no job.
void leave_mark(const Launch& launch, const std::string& point);

// Adds the ranks whose marks are there: one that has come may end before another is missed.
void look_for_marks(const Launch& launch, const std::string& point, std::set<int>& come);

// "rank 1, 2 has not come", or what is known where ranks run on other nodes too; "" where nothing
// is: this process has not come itself, or all have.
std::string who_is_missing(const Launch& launch, const std::set<int>& come);

}  // namespace zl
