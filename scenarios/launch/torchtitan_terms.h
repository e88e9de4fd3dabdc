// torchtitan's names of what zerolab has, too: schedules and models.
// Ownership: static data. Threads: immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/pipeline/pipeline.h"

namespace zl {

// "Interleaved1F1B"; empty: torchtitan has none such.
std::string_view torchtitan_schedule(PipelineKind kind);
std::optional<PipelineKind> schedule_of_torchtitan(std::string_view name);
// Schedules over several stages of a rank, of which torchtitan wants two at least.
bool has_several_stages(PipelineKind kind);

struct TorchtitanModel {
  std::string_view name;  // in zerolab's catalogue
  std::string_view module, flavor;
  std::string_view function;  // of release 0.3's configurations; empty: none
  std::int64_t layers = 0;
};

// nullptr: torchtitan does not have the model.
const TorchtitanModel* torchtitan_model(std::string_view name);
const TorchtitanModel* torchtitan_flavor(std::string_view module, std::string_view flavor);

}  // namespace zl
