#include "simulator/cluster/software.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "simulator/cluster/fitted_numbers.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

constexpr std::size_t kMostFitted = 12;

double share(JsonObject& object, const char* key, std::optional<double> fallback = {}) {
  const double value = object.fraction(key, fallback);
  if (value == 0) object.fail(key, "0 is not above 0");
  return value;
}

constexpr const char* kKernelNames[] = {"core",         "unfused", "memory-efficient", "flash-1",
                                        "flash-triton", "flash-2", "flash-3",          "cudnn"};
static_assert(std::size(kKernelNames) == kAttentionKernels);

AttentionKernel kernel_named(JsonObject& object, const char* key) {
  return static_cast<AttentionKernel>(object.choice(key, kKernelNames));
}

template <class Read>
void visit_generations(JsonObject& object, const Read& read) {
  for (std::size_t i = 1; i < kGenerations; ++i) {
    const auto generation = static_cast<Generation>(i);
    if (object.find(name_of(generation)) != nullptr) read(generation, name_of(generation));
  }
  object.finish();
}

using SharesByGeneration = std::map<Generation, double>;

void read_shares(JsonObject& object, const char* key, SharesByGeneration& shares) {
  if (object.find(key) == nullptr) return;
  JsonObject generations = object.object(key);
  visit_generations(generations, [&](Generation generation, const char* name) {
    shares[generation] = share(generations, name);
  });
}
double share_on(Generation generation, const SharesByGeneration& shares, double otherwise) {
  const auto found = shares.find(generation);
  return found == shares.end() ? otherwise : found->second;
}

void read_attention(JsonObject object, Software& software) {
  if (object.find("kernel") != nullptr) {
    software.kernels.attention = kernel_named(object, "kernel");
  }
  software.kernels.attention_rate = share(object, "rate", 1.0);
  software.kernels.score_bytes[0] = object.number("score_bytes_forward", 13.0);
  software.kernels.score_bytes[1] = object.number("score_bytes_backward", 19.0);
  visit_generations(object, [&](Generation generation, const char* key) {
    software.attention[generation] = kernel_named(object, key);
  });
}

OpWork read_work(JsonObject& op) {
  return {op.number("bytes_per_element", 0.0), op.number("kernels", 1.0)};
}

void read_instead(JsonObject& op, const char* key, OpWork& instead) {
  JsonObject work = op.object(key);
  instead = read_work(work);
  work.finish();
}

void read_ops(JsonObject object, Software& software) {
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    const Json* value = object.find(op_name(kind));
    if (value == nullptr) continue;
    JsonObject op(*value, object.path(op_name(kind)));
    software.kernels.ops[kind] = read_work(op);
    if (op.find("rms_norm") != nullptr) read_instead(op, "rms_norm", software.rms_norm_ops[kind]);
    if (op.find("gated") != nullptr) read_instead(op, "gated", software.gated_ops[kind]);
    op.finish();
  }
  object.finish();
}

void read_kernels(JsonObject object, Software& software) {
  software.gemm = share(object, "gemm", 1.0);
  read_shares(object, "gemm_on", software.gemm_on);
  read_shares(object, "gemm_unaligned", software.gemm_unaligned);
  software.memory = share(object, "memory", 1.0);
  software.kernels.reduction = share(object, "reduction", 1.0);
  if (object.find("attention") != nullptr) read_attention(object.object("attention"), software);
  if (object.find("ops") != nullptr) read_ops(object.object("ops"), software);
  object.finish();
}

void read_host(JsonObject object, Software& software) {
  software.op_seconds = object.number("op_seconds", 0.0);
  software.step_seconds = object.number("step_seconds", 0.0);
  if (object.find("collective_seconds") != nullptr) {
    software.kernels.collective_host_seconds = object.number("collective_seconds");
  }
  if (object.find("message_seconds") != nullptr) {
    software.kernels.message_host_seconds = object.number("message_seconds");
  }
  software.kernels.synchronizes_messages = object.boolean("synchronizes_messages", false);
  object.finish();
}

void read_communication(JsonObject object, Software& software) {
  software.intra = share(object, "intra", 1.0);
  software.inter = share(object, "inter", 1.0);
  software.collective_seconds = object.number("collective_seconds", 0.0);
  if (object.find("overlap_loss") != nullptr) {
    software.overlap_loss = object.fraction("overlap_loss");
  }
  software.kernels.gather_copies = object.number("gather_copies", 0.0);
  software.kernels.scatter_copies = object.number("scatter_copies", 0.0);
  software.kernels.staged_copies = object.number("staged_copies", 0.0);
  if (object.find("connections") != nullptr) {
    software.kernels.connections = object.positive("connections");
  }
  software.kernels.adapters = object.number("adapters", 0.0);
  software.kernels.reduces_last = object.boolean("reduces_last", false);
  software.kernels.message_stream = object.boolean("message_stream", false);
  software.kernels.post_validates = object.boolean("post_validates", false);
  object.finish();
}

void read_errors(JsonObject object, Software& software) {
  software.step_error = object.positive("unsupported");
  if (object.find("techniques") != nullptr) {
    JsonObject techniques = object.object("techniques");
    visit_generations(techniques, [&](Generation generation, const char* key) {
      software.techniques[generation] = read_technique_sets(techniques, key);
    });
  }
  visit_generations(object, [&](Generation generation, const char* key) {
    software.step_errors[generation] = object.positive(key);
  });
}

void read_fitted(JsonObject& object, Software& software) {
  const Json* list = object.find("fitted");
  if (list == nullptr) return;
  if (!list->is_array()) object.fail("fitted", "is not a list of keys");
  for (const Json& key : *list) {
    const auto& known = fitted_numbers();
    if (key == kFittedReserve) {
      software.fits_reserve = true;
      continue;
    }
    const bool is_known =
        std::ranges::any_of(known, [&](const auto& each) { return key == each.key; });
    if (!is_known) object.fail("fitted", shown(key) + " is no number that is fitted");
    software.fitted.push_back(key.get<std::string>());
  }
  if (list->size() > kMostFitted) {
    object.fail("fitted", std::to_string(list->size()) + " numbers are more than 12");
  }
}

void check_range(const JsonObject& object, const std::string& key, const FittedNumber& number,
                 double value) {
  if (value < number.least || value > number.most) {
    object.fail(key, "is outside what public benchmarks show");
  }
}

void read_priors(JsonObject object, Software& software) {
  for (const FittedNumber& number : fitted_numbers()) {
    if (object.find(number.key) == nullptr) continue;
    software.priors[number.key] = object.positive(number.key);
    check_range(object, number.key, number, software.priors[number.key]);
  }
  object.finish();
}

void read_left_out(JsonObject& object, Software& software) {
  const Json& groups = object.at("left_out");
  if (!groups.is_object()) object.fail("left_out", "is no object of lists of numbers");
  for (const auto& [group, numbers] : groups.items()) {
    const std::string key = "left_out." + shortened(group);
    if (!numbers.is_array() || numbers.size() != software.fitted.size()) {
      object.fail(key, "is no list of a number for each fitted one");
    }
    std::vector<double>& values = software.left_out[group];
    for (const std::string& fitted : software.fitted) {
      values.push_back(number_at(numbers[values.size()], object.path(key)));
      check_range(object, key, range_of(fitted), values.back());
    }
  }
}

ClusterSpec unsupported(ClusterSpec cluster) {
  cluster.is_supported = false;
  cluster.step_error = cluster.unsupported_step_error;
  return cluster;
}

void replace(const std::map<std::size_t, OpWork>& with, std::array<OpWork, kOpKinds>& ops) {
  for (const auto& [kind, work] : with) ops[kind] = work;
}

}  // namespace

const char* name_of(AttentionKernel kernel) {
  return kKernelNames[static_cast<std::size_t>(kernel)];
}

AttentionKernel Software::attention_on(Generation generation) const {
  const auto found = attention.find(generation);
  return found == attention.end() ? kernels.attention : found->second;
}

Software parse_software(std::string_view json, const std::string& source) {
  const Json value = parse_json(json, source);
  JsonObject object(value, source + ": software");
  if (object.count("schema") != 2) object.fail("schema", "is not 2, the only version that is read");
  Software software;
  software.name = object.text("name");
  if (object.find("base") != nullptr) software.base = object.text("base");
  if (object.find("kernels") != nullptr) read_kernels(object.object("kernels"), software);
  if (object.find("host") != nullptr) read_host(object.object("host"), software);
  if (object.find("communication") != nullptr) {
    read_communication(object.object("communication"), software);
  }
  if (object.find("memory") != nullptr) {
    software.held = parse_software_memory(object.object("memory"));
  }
  if (object.find("abilities") != nullptr) {
    software.abilities = parse_software_abilities(object.object("abilities"));
  }
  read_errors(object.object("step_error"), software);
  read_fitted(object, software);
  if (object.find("priors") != nullptr) read_priors(object.object("priors"), software);
  if (object.find("left_out") != nullptr) read_left_out(object, software);
  object.finish();
  return software;
}

ClusterSpec with_software(ClusterSpec cluster, const Software& software, const ModelConfig& model) {
  if (cluster.calibration || cluster.compute_is_host) {
    throw Error(ErrorCode::invalid,
                "run.software: \"" + shortened(software.name) +
                    "\" is for GPUs of the catalogue; " + cluster.name + " is priced by what " +
                    (cluster.compute_is_host ? "its own processor does" : "was measured on it") +
                    "; leave run.software (--software) out");
  }
  DeviceSpec& device = cluster.device;
  if (software.op_seconds > 0) device.launch_seconds = software.op_seconds;
  device.memory_efficiency *= software.memory;
  device.software = software.kernels;
  if (model.norm == NormKind::rms_norm) replace(software.rms_norm_ops, device.software.ops);
  if (is_gated(model.activation)) replace(software.gated_ops, device.software.ops);
  device.software.attention = software.attention_on(device.generation);
  device.software.gemm_unaligned = share_on(device.generation, software.gemm_unaligned, 1);
  if (software.held && software.held->kept_products > 0) {
    device.software.products_again = 1 - 1.0 / static_cast<double>(software.held->kept_products);
  }
  const double gemm = share_on(device.generation, software.gemm_on, software.gemm);
  for (ComputeRate& rate : device.rates) rate.efficiency *= gemm;
  cluster.intra.efficiency *= software.intra;
  cluster.intra.all_reduce_rate *= software.intra;
  cluster.inter.efficiency *= software.inter;
  cluster.collective_seconds += software.collective_seconds;
  cluster.step_seconds = software.step_seconds;
  if (software.overlap_loss >= 0) cluster.overlap_loss = software.overlap_loss;
  const auto error = software.step_errors.find(device.generation);
  cluster.unsupported_step_error = software.step_error;
  if (error == software.step_errors.end()) return unsupported(std::move(cluster));
  cluster.is_supported = true;
  cluster.step_error = error->second;
  const auto used = software.techniques.find(device.generation);
  if (used != software.techniques.end()) cluster.techniques = used->second;
  return cluster;
}

ClusterSpec with_strategy(ClusterSpec cluster, const Strategy& strategy) {
  const bool is_supported = covers(cluster.techniques, techniques_of(strategy));
  return is_supported ? cluster : unsupported(std::move(cluster));
}

ClusterSpec timed_apart(ClusterSpec cluster) {
  cluster.device.software.timed_apart = true;
  cluster.step_seconds = 0;
  return cluster;
}

}  // namespace zl::sim
