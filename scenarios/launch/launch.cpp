#include "scenarios/launch/launch.h"

#include <array>

#include "scenarios/files/clusters.h"
#include "scenarios/launch/accelerate_launch.h"
#include "scenarios/launch/deepspeed_launch.h"
#include "scenarios/launch/megatron.h"
#include "scenarios/launch/obstacles.h"
#include "scenarios/launch/torchtitan.h"

namespace zl {
namespace {

struct Writer {
  const char* name;
  LaunchFile (*write)(const Strategy&, const LaunchFacts&);
};

constexpr std::array<Writer, kLaunchSoftware> kWriters{{
    {"deepspeed", write_deepspeed},
    {"megatron", write_megatron},
    {"torchtitan", write_torchtitan},
    {"torchtitan-python", write_torchtitan_python},
    {"accelerate", write_accelerate},
}};

}  // namespace

const char* name_of(LaunchSoftware software) {
  return kWriters[static_cast<std::size_t>(software)].name;
}

std::optional<LaunchSoftware> launch_software(const std::string& name) {
  for (std::size_t i = 0; i < kWriters.size(); ++i) {
    if (name == kWriters[i].name) return static_cast<LaunchSoftware>(i);
  }
  return std::nullopt;
}

std::string launch_software_names() {
  std::string names;
  for (const Writer& each : kWriters) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

LaunchFacts launch_facts(const Scenario& scenario) {
  const std::string& software = scenario.run.software;
  return {.model = scenario.model,
          .ranks = scenario.run.ranks,
          .node_devices = scenario_cluster(scenario).node_devices,
          .sequence_length = scenario.run.sequence_length,
          .compiles = software.empty() || software.ends_with("-compile")};
}

// What each software has no word for at all.
LaunchFile write_launch(LaunchSoftware software, const Strategy& strategy,
                        const LaunchFacts& facts) {
  Obstacles obstacles(name_of(software));
  if (strategy.sparse_attention.is_sparse() && software != LaunchSoftware::deepspeed) {
    obstacles.add("sparse_attention", "only DeepSpeed's file has it");
  }
  obstacles.throw_if_any();
  return kWriters[static_cast<std::size_t>(software)].write(strategy, facts);
}

}  // namespace zl
