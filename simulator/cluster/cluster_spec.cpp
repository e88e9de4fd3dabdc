#include "simulator/cluster/cluster_spec.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "simulator/cluster/calibration_json.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

constexpr std::array kRateTypes = {DType::f64, DType::f32, DType::bf16, DType::f16};

constexpr double kLeastPeak =
    1e6;  // a figure in TFLOP/s is below it, a fake of a GPU on a busy processor is not

std::size_t index_of(DType dtype) { return static_cast<std::size_t>(dtype); }

// Types without a rate of their own: doubles at half the rate of floats, 16-bit at that of floats
// (converted first).
void fill_missing_rates(DeviceSpec& device) {
  const ComputeRate single = device.rate(DType::f32);
  if (device.rate(DType::f64).peak == 0) {
    device.rates[index_of(DType::f64)] = {single.peak / 2, single.efficiency};
  }
  for (ComputeRate& rate : device.rates) {
    if (rate.peak == 0) rate = single;
  }
}

void read_generation(JsonObject& object, DeviceSpec& device) {
  if (object.find("generation") == nullptr) return;
  device.generation = static_cast<Generation>(object.choice("generation", kGenerationNames));
}

void read_power(JsonObject object, DeviceSpec& device) {
  device.power_limit = object.positive("limit");
  device.power_design = object.positive("design");
  if (device.power_limit > device.power_design) {
    object.fail("limit", "is above what the rates are stated for (design)");
  }
  object.finish();
}

DeviceSpec read_device(JsonObject object) {
  DeviceSpec device;
  device.name = object.text("name");
  read_generation(object, device);
  if (object.find("power") != nullptr) read_power(object.object("power"), device);
  device.memory = object.bytes("memory");
  device.workspace = object.bytes("workspace", 0);
  device.memory_bandwidth = object.positive("memory_bandwidth");
  device.memory_efficiency = object.fraction("memory_efficiency", 0.85);
  device.multiprocessors = object.count("multiprocessors", 0);
  device.launch_seconds = object.number("launch_seconds", 0.0);
  device.kernel_seconds = object.number("kernel_seconds", 0.0);
  JsonObject peaks = object.object("peak_flops");
  JsonObject efficiencies = object.object("gemm_efficiency");
  for (const DType dtype : kRateTypes) {
    const char* name = name_of(dtype);
    if (dtype != DType::f32 && peaks.find(name) == nullptr) {
      efficiencies.find(name);
      continue;
    }
    const double peak = peaks.positive(name);
    if (peak < kLeastPeak) peaks.fail(name, shown(peaks.at(name)) + " FLOP/s is not at least 1e6");
    device.rates[index_of(dtype)] = {peak, efficiencies.fraction(name)};
  }
  peaks.finish();
  efficiencies.finish();
  fill_missing_rates(device);
  if (const Json* attention = object.find("attention_efficiency")) {
    JsonObject reader(*attention, object.path("attention_efficiency"));
    device.attention_forward = reader.fraction("forward");
    device.attention_backward = reader.fraction("backward");
    reader.finish();
  } else {
    device.attention_forward = device.attention_backward = device.rate(DType::f32).efficiency;
  }
  object.finish();
  return device;
}

Link read_link(JsonObject object) {
  Link link;
  link.name = object.text("name");
  link.bandwidth = object.positive("bandwidth");
  link.efficiency = object.fraction("efficiency", 1.0);
  link.all_reduce_rate = object.number("all_reduce_rate", 0.0);
  const Json& hops = object.at("hop_seconds");
  if (hops.is_number()) {
    link.hop_seconds.fill(object.number("hop_seconds"));
  } else if (hops.is_array() && hops.size() == kProtocols &&
             std::all_of(hops.begin(), hops.end(), [](const Json& hop) {
               return hop.is_number() && hop.get<double>() >= 0;
             })) {
    for (std::size_t i = 0; i < kProtocols; ++i) link.hop_seconds[i] = hops[i].get<double>();
  } else {
    object.fail("hop_seconds", shown(hops) + " is neither seconds nor three of them");
  }
  object.finish();
  return link;
}

void read_links(JsonObject links, ClusterSpec& cluster) {
  cluster.intra = read_link(links.object("intra"));
  cluster.inter = read_link(links.object("inter"));
  cluster.host = read_link(links.object("host"));
  if (links.find("storage") != nullptr) cluster.storage = read_link(links.object("storage"));
  links.finish();
}

void read_spread(const Json& value, const std::string& where, ClusterSpec& cluster) {
  JsonObject spread(value, where);
  for (std::size_t i = 0; i < kCostClasses; ++i) {
    cluster.spread[i] = spread.number(name_of(static_cast<CostClass>(i)), cluster.spread[i]);
  }
  spread.finish();
}

Json write_link(const Link& link) {
  Json written = {{"name", link.name},
                  {"bandwidth", link.bandwidth},
                  {"efficiency", link.efficiency},
                  {"hop_seconds", link.hop_seconds}};
  if (link.all_reduce_rate > 0) written["all_reduce_rate"] = link.all_reduce_rate;
  return written;
}

Json write_device(const DeviceSpec& device) {
  Json peaks = Json::object(), efficiencies = Json::object();
  for (const DType dtype : kRateTypes) {
    peaks[name_of(dtype)] = device.rate(dtype).peak;
    efficiencies[name_of(dtype)] = device.rate(dtype).efficiency;
  }
  Json written = {
      {"name", device.name},
      {"memory", device.memory},
      {"workspace", device.workspace},
      {"memory_bandwidth", device.memory_bandwidth},
      {"memory_efficiency", device.memory_efficiency},
      {"multiprocessors", device.multiprocessors},
      {"launch_seconds", device.launch_seconds},
      {"kernel_seconds", device.kernel_seconds},
      {"peak_flops", peaks},
      {"gemm_efficiency", efficiencies},
      {"attention_efficiency",
       {{"forward", device.attention_forward}, {"backward", device.attention_backward}}}};
  if (device.generation != Generation::unknown) written["generation"] = name_of(device.generation);
  if (device.power_limit > 0) {
    written["power"] = {{"limit", device.power_limit}, {"design", device.power_design}};
  }
  return written;
}

}  // namespace

double DeviceSpec::clock() const {
  return power_limit > 0 ? std::sqrt(power_limit / power_design) : 1;
}

const char* name_of(CostClass cost_class) {
  constexpr const char* kNames[] = {"gemm", "attention", "memory", "collective", "copy", "host"};
  return kNames[static_cast<std::size_t>(cost_class)];
}

ClusterSpec parse_cluster(std::string_view json, const std::string& source) {
  const Json value = parse_json(json, source);
  JsonObject object(value, source + ": cluster");
  ClusterSpec cluster;
  if (object.count("schema") != 1) object.fail("schema", "is not 1, the only version so far");
  cluster.name = object.text("name");
  cluster.device = read_device(object.object("device"));
  cluster.devices = object.count("devices", 1);
  cluster.node_devices = object.count("node_devices");
  if (cluster.devices < 1) object.fail("devices", "0 is not at least 1");
  if (cluster.node_devices < 1) object.fail("node_devices", "0 is not at least 1");
  read_links(object.object("links"), cluster);
  cluster.host_memory = object.bytes("host_memory", 0);
  cluster.host_memory_bandwidth =
      object.number("host_memory_bandwidth", cluster.host_memory_bandwidth);
  cluster.collective_seconds = object.number("collective_seconds", 0.0);
  cluster.overlap_loss = object.fraction("overlap_loss", 0.0);
  cluster.step_seconds = object.number("step_seconds", 0.0);
  cluster.step_error = object.number("step_error", kUncalibratedStepError);
  cluster.own_step_error = object.number("own_step_error", kOwnStepError);
  cluster.compute_is_host = object.boolean("compute_is_host", false);
  cluster.shared_cores = object.count("shared_cores", 0);
  if (const Json* spread = object.find("spread")) {
    read_spread(*spread, object.path("spread"), cluster);
  }
  if (const Json* calibration = object.find("calibration")) {
    cluster.calibration = read_calibration(*calibration, object.path("calibration"));
  }
  object.finish();
  return cluster;
}

std::string cluster_json(const ClusterSpec& cluster) {
  Json value = {{"schema", 1},
                {"name", cluster.name},
                {"device", write_device(cluster.device)},
                {"devices", cluster.devices},
                {"node_devices", cluster.node_devices},
                {"links",
                 {{"intra", write_link(cluster.intra)},
                  {"inter", write_link(cluster.inter)},
                  {"host", write_link(cluster.host)},
                  {"storage", write_link(cluster.storage)}}},
                {"host_memory", cluster.host_memory},
                {"host_memory_bandwidth", cluster.host_memory_bandwidth},
                {"collective_seconds", cluster.collective_seconds},
                {"overlap_loss", cluster.overlap_loss},
                {"step_seconds", cluster.step_seconds},
                {"step_error", cluster.step_error},
                {"own_step_error", cluster.own_step_error},
                {"compute_is_host", cluster.compute_is_host},
                {"shared_cores", cluster.shared_cores}};
  for (std::size_t i = 0; i < kCostClasses; ++i) {
    value["spread"][name_of(static_cast<CostClass>(i))] = cluster.spread[i];
  }
  if (cluster.calibration) value["calibration"] = write_calibration(*cluster.calibration);
  return to_text(value, 2) + "\n";
}

ClusterSpec with_devices(ClusterSpec cluster, int devices) {
  if (devices < 1) {
    throw Error(ErrorCode::invalid, "ranks: " + std::to_string(devices) + " is not at least 1");
  }
  cluster.devices = devices;
  return cluster;
}

ClusterSpec with_link_bandwidth(ClusterSpec cluster, double bytes_per_second) {
  if (cluster.shared_cores > 0) {
    cluster.link_bandwidth = bytes_per_second;
    return cluster;
  }
  const bool several_nodes = cluster.devices > cluster.node_devices;
  Link& link = several_nodes ? cluster.inter : cluster.intra;
  link.bandwidth = several_nodes ? bytes_per_second / cluster.node_devices : bytes_per_second;
  link.efficiency = 1;
  link.all_reduce_rate = 0;
  return cluster;
}

DType default_precision(const ClusterSpec& cluster) {
  if (cluster.compute_is_host) return DType::f32;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    if (has_tensor_peak(cluster.device, dtype)) return dtype;
  }
  return DType::f32;
}

DeviceProperties device_properties(const ClusterSpec& cluster) {
  DeviceProperties properties;
  properties.name = cluster.device.name;
  properties.memory = cluster.device.memory;
  properties.host_memory = cluster.host_memory / std::min(cluster.devices, cluster.node_devices);
  properties.memory_is_host = cluster.compute_is_host;
  properties.workspace = cluster.device.workspace;
  return properties;
}

}  // namespace zl::sim
