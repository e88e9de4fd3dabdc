// Plans as the configuration of the software that is to run them.
// Ownership: values. Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/files/scenario.h"
#include "scenarios/launch/launch_file.h"

namespace zl {

enum class LaunchSoftware : std::uint8_t {
  deepspeed,          // JSON, as release 0.19.8 reads it
  megatron,           // a shell script with the arguments of Megatron-LM (megatron-core 0.16)
  torchtitan,         // TOML, releases 0.1 and 0.2
  torchtitan_python,  // a module with a function, release 0.3 on, which reads no TOML
  accelerate,         // YAML of `accelerate launch`, FSDP2
};
inline constexpr int kLaunchSoftware = 5;

const char* name_of(LaunchSoftware software);  // "torchtitan-python"
std::optional<LaunchSoftware> launch_software(const std::string& name);
std::string launch_software_names();  // "deepspeed, megatron, ..."

// What a scenario's plans are launched with.
LaunchFacts launch_facts(const Scenario& scenario);

// Throws Error{invalid} naming everything of the plan that the software does not have, why, and
// which --constrain leaves plans that it has.
LaunchFile write_launch(LaunchSoftware software, const Strategy& strategy,
                        const LaunchFacts& facts);

}  // namespace zl
