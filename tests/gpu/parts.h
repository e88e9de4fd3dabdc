// The parts of the acceptance run: each fills in its report, within options.budget seconds.
// Ownership: nothing. Threads: the main thread. Errors are thrown; run_part() makes failures of
// them.
#pragma once

#include "tests/gpu/report.h"

namespace zl::gpu {

void run_conformance(Report& report, const Options& options);
void run_equality(Report& report, const Options& options);
void run_memory(Report& report, const Options& options);
void run_throughput(Report& report, const Options& options);
void run_kernels(Report& report, const Options& options);
void run_calibration(Report& report, const Options& options);
void run_offload(Report& report, const Options& options);

}  // namespace zl::gpu
