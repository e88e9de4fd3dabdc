// Which cores the threads of ranks run on.
// Ownership: nothing. Threads: acts on the calling one.
#pragma once

namespace zl {

// Keeps the calling thread, which is this rank's, and those that it starts from now on, on one of
// the process's cores where the ranks are twice as many as these, or another multiple. The kernel
// may else have three of four ranks on one of two cores, for tenths of a second where all wait for
// each other too often for it to move them. Does nothing elsewhere, or where the system refuses.
void keep_to_core(int rank, int ranks);

}  // namespace zl
