#include "simulator/cluster/calibration_json.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "core/base/text.h"
#include "simulator/json/object.h"

namespace zl::sim {
namespace {

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) names.emplace_back(op_name(kind));
  return names;
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < kCollectiveKinds; ++kind) {
    names.emplace_back(name_of(static_cast<CollectiveKind>(kind)));
  }
  return names;
}

std::vector<std::string> route_names() {
  std::vector<std::string> names;
  for (std::size_t route = 0; route < kRoutes; ++route) {
    names.emplace_back(name_of(static_cast<Route>(route)));
  }
  return names;
}

LinearCost read_line(JsonObject& object) {
  LinearCost line;
  line.fixed = object.number("seconds");
  line.per_unit = object.number("seconds_per_unit");
  line.per_byte = object.number("seconds_per_byte");
  line.spread = object.number("spread");
  line.samples = object.count("samples");
  line.from_bytes = object.number("from_bytes", 0.0);
  return line;
}

Json write_line(const LinearCost& line) {
  Json written = {{"seconds", line.fixed},
                  {"seconds_per_unit", line.per_unit},
                  {"seconds_per_byte", line.per_byte},
                  {"spread", line.spread},
                  {"samples", line.samples}};
  if (line.from_bytes > 0) written["from_bytes"] = line.from_bytes;
  return written;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (std::size_t dtype = 0; dtype < kDTypes; ++dtype) {
    names.emplace_back(name_of(static_cast<DType>(dtype)));
  }
  return names;
}

// Position of the text under `key` in `names`.
std::size_t position(JsonObject& row, const char* key, const std::vector<std::string>& names) {
  const std::string name = row.text(key);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    row.fail(key, "\"" + shortened(name) + "\" is unknown; the nearest is \"" +
                      nearest(name, names) + "\"; run the calibration again");
  }
  return static_cast<std::size_t>(found - names.begin());
}

const Json& rows_at(JsonObject& object, const char* key) {
  const Json& rows = object.at(key);
  if (!rows.is_array()) object.fail(key, shown(rows) + " is not a list");
  return rows;
}

// Rows {"<kind_key>": name, "dtype": type, line}. None where an older file has none.
template <class Table>
void read_table(JsonObject& object, const char* key, const char* kind_key,
                const std::vector<std::string>& names, Table& table, bool is_new = false) {
  if (is_new && object.find(key) == nullptr) return;
  const Json& rows = rows_at(object, key);
  const std::string where = object.path(key);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    JsonObject row(rows[i], where + "[" + std::to_string(i) + "]");
    const std::size_t kind = position(row, kind_key, names);
    const std::size_t dtype = position(row, "dtype", dtype_names());
    table[kind][dtype] = read_line(row);
    row.finish();
  }
}

// Rows {"route": name, line}.
void read_routes(JsonObject& object, const char* key, RankCoefficients::RouteLines& routes) {
  const Json& rows = rows_at(object, key);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    JsonObject row(rows[i], object.path(key) + "[" + std::to_string(i) + "]");
    const std::size_t route = position(row, "route", route_names());
    routes[route] = read_line(row);
    row.finish();
  }
}

template <class Table>
Json write_table(const char* kind_key, const std::vector<std::string>& names, const Table& table) {
  Json rows = Json::array();
  for (std::size_t kind = 0; kind < names.size(); ++kind) {
    for (std::size_t dtype = 0; dtype < kDTypes; ++dtype) {
      if (table[kind][dtype].samples == 0) continue;
      Json row = {{kind_key, names[kind]}, {"dtype", name_of(static_cast<DType>(dtype))}};
      row.update(write_line(table[kind][dtype]));
      rows.push_back(row);
    }
  }
  return rows;
}

Json write_routes(const RankCoefficients::RouteLines& routes) {
  Json rows = Json::array();
  for (std::size_t route = 0; route < kRoutes; ++route) {
    if (routes[route].samples == 0) continue;
    Json row = {{"route", name_of(static_cast<Route>(route))}};
    row.update(write_line(routes[route]));
    rows.push_back(row);
  }
  return rows;
}

RankCoefficients read_ranks(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  RankCoefficients entry;
  entry.ranks = object.count("ranks");
  if (entry.ranks < 1) object.fail("ranks", "0 is not at least 1");
  entry.seconds_per_event = object.number("seconds_per_event");
  entry.seconds_per_step = object.number("seconds_per_step");
  entry.seconds_per_wait = object.number("seconds_per_wait", 0.0);
  read_table(object, "ops", "op", op_names(), entry.ops);
  read_table(object, "collectives", "collective", collective_names(), entry.collectives);
  if (object.find("copy") != nullptr) {  // older files: both directions between host and device
    JsonObject copy = object.object("copy");
    entry.routes[0] = entry.routes[1] = read_line(copy);
    copy.finish();
  } else {
    read_routes(object, "routes", entry.routes);
  }
  if (object.find("large_routes") != nullptr) {
    read_routes(object, "large_routes", entry.large_routes);
  }
  read_table(object, "host_ops", "op", op_names(), entry.host_ops, true);
  read_table(object, "large_ops", "op", op_names(), entry.large_ops, true);
  read_table(object, "forward_ops", "op", op_names(), entry.forward_ops, true);
  read_table(object, "large_forward_ops", "op", op_names(), entry.large_forward_ops, true);
  read_table(object, "gradient_ops", "op", op_names(), entry.gradient_ops, true);
  read_table(object, "large_gradient_ops", "op", op_names(), entry.large_gradient_ops, true);
  read_table(object, "large_collectives", "collective", collective_names(), entry.large_collectives,
             true);
  object.finish();
  return entry;
}

Json write_ranks(const RankCoefficients& entry) {
  return {
      {"ranks", entry.ranks},
      {"seconds_per_event", entry.seconds_per_event},
      {"seconds_per_step", entry.seconds_per_step},
      {"seconds_per_wait", entry.seconds_per_wait},
      {"ops", write_table("op", op_names(), entry.ops)},
      {"large_ops", write_table("op", op_names(), entry.large_ops)},
      {"forward_ops", write_table("op", op_names(), entry.forward_ops)},
      {"large_forward_ops", write_table("op", op_names(), entry.large_forward_ops)},
      {"gradient_ops", write_table("op", op_names(), entry.gradient_ops)},
      {"large_gradient_ops", write_table("op", op_names(), entry.large_gradient_ops)},
      {"host_ops", write_table("op", op_names(), entry.host_ops)},
      {"collectives", write_table("collective", collective_names(), entry.collectives)},
      {"large_collectives", write_table("collective", collective_names(), entry.large_collectives)},
      {"routes", write_routes(entry.routes)},
      {"large_routes", write_routes(entry.large_routes)}};
}

}  // namespace

const RankCoefficients& Calibration::nearest(int ranks) const {
  return *std::min_element(by_ranks.begin(), by_ranks.end(), [&](const auto& a, const auto& b) {
    return std::abs(a.ranks - ranks) < std::abs(b.ranks - ranks);
  });
}

Calibration read_calibration(const Json& value, const std::string& where) {
  JsonObject object(value, where);
  Calibration calibration;
  calibration.runs = object.count("runs");
  calibration.overlap_loss = object.fraction("overlap_loss");
  calibration.step_error = object.number("step_error");
  calibration.own_error = object.number("own_error", 0.0);  // older files have none
  calibration.quiet = object.boolean("quiet", false);       // nor that
  if (object.find("file_overlap_loss") != nullptr) {
    calibration.file_overlap_loss = object.fraction("file_overlap_loss");
  }
  object.number("drift", 0.0);  // and this, which is no more
  const Json& rows = object.at("by_ranks");
  if (!rows.is_array() || rows.empty()) object.fail("by_ranks", "is not a list with an entry");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    calibration.by_ranks.push_back(
        read_ranks(rows[i], object.path("by_ranks") + "[" + std::to_string(i) + "]"));
  }
  object.finish();
  return calibration;
}

Json write_calibration(const Calibration& calibration) {
  Json rows = Json::array();
  for (const RankCoefficients& entry : calibration.by_ranks) rows.push_back(write_ranks(entry));
  Json json = {{"runs", calibration.runs},
               {"overlap_loss", calibration.overlap_loss},
               {"step_error", calibration.step_error},
               {"own_error", calibration.own_error},
               {"quiet", calibration.quiet},
               {"by_ranks", rows}};
  if (calibration.file_overlap_loss) json["file_overlap_loss"] = *calibration.file_overlap_loss;
  return json;
}

}  // namespace zl::sim
