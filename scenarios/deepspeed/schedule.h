// The section scheduler.
// Ownership: values. Threads: pure function of its keys.
#pragma once

#include "core/optim/schedule_config.h"
#include "scenarios/deepspeed/release.h"

namespace zl {

// `lr`: the optimizer's.
ScheduleConfig build_schedule(Keys& keys, const ImportContext& context, const Release& release,
                              double lr);

}  // namespace zl
