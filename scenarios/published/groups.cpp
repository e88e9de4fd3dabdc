#include "scenarios/published/groups.h"

#include "simulator/cluster/fitted_numbers.h"

namespace zl {

std::string source_group(const PublishedRun& run, sim::Generation generation) {
  return run.source + ", " + name_of(generation);
}

std::string shape_group(const PublishedRun& run, sim::Generation generation) {
  const std::string &gpus = run.row.at("n_gpus"), &tensor = run.row.at("tp");
  return run.row.at("layers") + " layers of " + run.row.at("hidden") + ", " +
         (tensor.empty() ? "" : "tensor " + tensor + ", ") +
         (gpus.empty() ? "a node" : gpus + (gpus == "1" ? " GPU" : " GPUs")) + ", " +
         name_of(generation);
}

std::optional<sim::Software> fitted_without(const sim::Software& profile, const PublishedRun& run,
                                            sim::Generation generation) {
  auto without = sim::fitted_without(profile, source_group(run, generation));
  return without ? without : sim::fitted_without(profile, shape_group(run, generation));
}

}  // namespace zl
