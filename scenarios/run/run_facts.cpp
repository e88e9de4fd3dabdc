#include "scenarios/run/run_facts.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/crc32c.h"
#include "core/base/error.h"
#include "results/environment.h"
#include "scenarios/files/strategy_json.h"

namespace zl {
namespace {

// One fact per leaf: "run.seed", "strategies.0.optimizer.type".
void add_leaves(const Json& object, std::vector<Fact>& facts) {
  const Json leaves = object.flatten();
  for (const auto& [pointer, leaf] : leaves.items()) {
    std::string key = pointer.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    facts.push_back({std::move(key), leaf.dump(-1, ' ', false, Json::error_handler_t::replace)});
  }
}

std::string given(const std::string& value) { return value.empty() ? "none" : value; }

}  // namespace

std::vector<Fact> run_facts(const Scenario& scenario, const Strategy& strategy,
                            const std::string& data, const RunHooks& hooks) {
  std::vector<Fact> facts;
  facts.push_back({"zerolab", ZL_VERSION " (" + detect_environment().commit + ")"});
  add_leaves(Json::parse(canonical_json(scenario)), facts);
  facts.push_back({"data", data});
  facts.push_back({"strategy", strategy.name});
  facts.push_back({"recomputation", recompute_text(strategy.recompute)});
  facts.push_back({"--checkpoint", given(hooks.checkpoint.folder)});
  facts.push_back({"--checkpoint-every", std::to_string(hooks.checkpoint.every)});
  facts.push_back({"--resume", hooks.checkpoint.resume ? "true" : "false"});
  facts.push_back({"--save", given(hooks.save_weights_to)});
  return facts;
}

std::string data_fingerprint(const TokenSource& source, const std::string& path) {
  if (path.empty()) return "no file";
  std::ifstream file(path, std::ios::binary);
  std::array<char, 1 << 16> buffer;
  std::uint32_t crc = 0;
  while (file.read(buffer.data(), buffer.size()), file.gcount() > 0) {
    crc = crc32c(reinterpret_cast<const std::byte*>(buffer.data()), file.gcount(), crc);
  }
  if (file.bad()) throw Error(ErrorCode::failed, path + ": cannot read it again");
  char text[16];
  std::snprintf(text, sizeof text, "%08x", crc);
  return std::to_string(source.tokens()) + " tokens, crc32c " + text;
}

}  // namespace zl
