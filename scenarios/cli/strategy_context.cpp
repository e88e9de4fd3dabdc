#include "scenarios/cli/strategy_context.h"

#include <CLI/CLI.hpp>

#include "scenarios/cli/options.h"
#include "scenarios/files/clusters.h"
#include "scenarios/files/defaults.h"
#include "scenarios/files/model_file.h"

namespace zl::cli {

void add_strategy_context(CLI::App& app, StrategyContext& options) {
  app.add_option("--ranks", options.ranks,
                 "Data-parallel ranks (default: the cluster's, or those the batch implies)")
      ->check(CLI::Range(std::int64_t{1}, kMaxCount));
  app.add_option("--model", options.model, "Model that \"auto\" values depend on");
  app.add_option("--cluster", options.cluster,
                 "Cluster whose devices decide fp16 or bf16 \"auto\"");
}

ImportContext import_context(const StrategyContext& options, ModelConfig& model) {
  ImportContext context;
  if (!options.model.empty()) {
    model = load_model(options.model);
    context.model = &model;
  }
  if (!options.cluster.empty()) {
    const sim::ClusterSpec cluster = load_cluster(options.cluster);
    context.default_precision = sim::default_precision(cluster);
    context.ranks = cluster.devices;
  }
  if (options.ranks > 0) context.ranks = options.ranks;
  context.infer_ranks = options.ranks == 0 && options.cluster.empty();
  return context;
}

}  // namespace zl::cli
