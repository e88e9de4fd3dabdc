#include "scenarios/files/run_settings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/base/error.h"

namespace zl {
namespace {

// A value that is not the default of its key.
Json another(const std::string& key, run_value::Whole) { return key == "seed" ? 7 : 3; }
Json another(const std::string&, run_value::Bytes) { return 4 << 20; }
Json another(const std::string&, run_value::Bandwidth) { return 1e9; }
Json another(const std::string&, run_value::Precision) { return "bf16"; }
Json another(const std::string&, run_value::Flag) { return false; }
Json another(const std::string&, run_value::Text text) {
  const std::string choices = text.choices;
  return choices.empty() ? "other" : choices.substr(choices.rfind(' ') + 1);
}

TEST(RunSettings, EveryFieldHasAKeyOfItsOwn) {
  // A new field does not compile until it is counted here.
  const RunSettings defaults;
  [[maybe_unused]] const auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v,
                                w] = defaults;
  constexpr std::size_t kFields = 23;
  std::set<std::string> names;
  visit_run_keys([&](const RunKey& key, auto member, auto, auto rule) {
    names.insert(key.name);
    Json file = {{key.name, another(key.name, rule)}};
    const RunSettings run = read_run_settings(file);
    EXPECT_NE(run.*member, defaults.*member) << key.name;
    const bool written = run_settings_to_json(run).contains(key.name);
    EXPECT_EQ(written, key.written != RunKey::Written::never) << key.name;
    EXPECT_EQ(run_settings_to_json(defaults).contains(key.name),
              key.written == RunKey::Written::always);
    if (written) {
      const Json again = {{key.name, run_settings_to_json(run)[key.name]}};
      EXPECT_EQ(read_run_settings(again).*member, run.*member);
    }
  });
  EXPECT_EQ(names.size(), kFields);
}

TEST(RunSettings, OverridesReplaceWhatTheFileSays) {
  Json run = {{"steps", 5}, {"data", "a.txt"}};
  RunOverrides overrides;
  overrides.steps = 9;
  overrides.device_memory = "1KiB";
  overrides.deterministic = false;
  apply_overrides(overrides, run);
  const RunSettings read = read_run_settings(run);
  EXPECT_EQ(read.steps, 9);
  EXPECT_EQ(read.data, "a.txt");
  EXPECT_EQ(read.device_memory, 1024);
  EXPECT_FALSE(read.deterministic);
}

// The bytes of canonical files are whole numbers; who writes 80 forgot the unit.
TEST(RunSettings, ABareNumberWhereAUnitBelongsIsRefused) {
  const auto problem = [](const char* key, const Json& value) -> std::string {
    try {
      read_run_settings({{key, value}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(problem("device_memory", 80), "run.device_memory: 80 has no unit; 80GiB?");
  EXPECT_EQ(problem("device_memory", "80"), "run.device_memory: 80 has no unit; 80GiB?");
  EXPECT_EQ(problem("host_memory", 512), "run.host_memory: 512 has no unit; 512GiB?");
  EXPECT_EQ(problem("link_bandwidth", 100), "run.link_bandwidth: 100 has no unit; 100Gbit?");
  EXPECT_EQ(problem("device_memory", 85899345920), "accepted");
  EXPECT_EQ(problem("device_memory", 0), "accepted");
  EXPECT_EQ(problem("link_bandwidth", 1.25e10), "accepted");
}

TEST(RunSettings, WhatIsLessThanAMillionBytesIsWrittenWithItsUnit) {
  const RunSettings run = read_run_settings({{"ranks", 2},
                                             {"sequence_length", 64},
                                             {"device_memory", "512KiB"},
                                             {"link_bandwidth", "8bit"}});
  const Json written = run_settings_to_json(run);
  EXPECT_EQ(written["device_memory"], "524288B");
  const RunSettings again = read_run_settings(written);
  EXPECT_EQ(again.device_memory, 512 << 10);
  EXPECT_EQ(again.link_bandwidth, 1);
}

TEST(RunSettings, ThousandsAreWrittenShort) {
  const RunSettings run = read_run_settings({{"sequence_length", "8k"}, {"steps", "2k"}});
  EXPECT_EQ(run.sequence_length, 8192);
  EXPECT_EQ(run.steps, 2000);
}

TEST(RunSettings, OptionsAreTheKeysWithDashes) {
  EXPECT_EQ(option_of({"gradient_accumulation", RunKey::Written::never, RunKey::Recorded::yes, ""}),
            "--gradient-accumulation");
}

}  // namespace
}  // namespace zl
