// Cluster and software files; what is read of a cluster reads back as the same.
#include "simulator/cluster/cluster_spec.h"
#include "simulator/cluster/software.h"
#include "tests/fuzz/fuzz.h"

ZL_FUZZ_TARGET(cluster) {
  const std::string_view text = zl::fuzz::text_of(data, size);
  zl::fuzz::takes([&] { zl::sim::parse_software(text, "input.json"); });
  zl::sim::ClusterSpec cluster;
  if (!zl::fuzz::takes([&] { cluster = zl::sim::parse_cluster(text, "input.json"); })) return 0;
  zl::sim::device_properties(cluster);
  zl::sim::default_precision(cluster);
  const std::string written = zl::sim::cluster_json(cluster);
  const bool taken = zl::fuzz::takes([&] {
    const std::string again = zl::sim::cluster_json(zl::sim::parse_cluster(written, "again.json"));
    zl::fuzz::require(again == written, "another cluster:\n" + written + again);
  });
  zl::fuzz::require(taken, "what was written is refused:\n" + written);
  return 0;
}
