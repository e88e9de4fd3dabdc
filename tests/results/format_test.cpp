#include "results/format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "tests/results/fixtures.h"

namespace zl::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Table small_table() {
  return {{{"strategy", Align::left},
           {"peak", Align::right, Unit::bytes},
           {"step", Align::right, Unit::seconds},
           {"mfu", Align::right, Unit::fraction}},
          {{"zero-2", std::int64_t{1536}, 0.0125, 0.5},
           {"größe|x", std::int64_t{1} << 30, 2.0, Cell{}}}};
}

TEST(Format, TableIsAlignedByCodePoints) {
  EXPECT_EQ(render(small_table(), Format::table),
            "strategy      peak       step      mfu\n"
            "--------  --------  ---------  -------\n"
            "zero-2    1.50 KiB  12.500 ms  50.00 %\n"
            "größe|x   1.00 GiB    2.000 s        -\n");
}

TEST(Format, MarkdownEscapesBars) {
  EXPECT_EQ(render(small_table(), Format::md),
            "| strategy |     peak |      step |     mfu |\n"
            "| -------- | -------: | --------: | ------: |\n"
            "| zero-2   | 1.50 KiB | 12.500 ms | 50.00 % |\n"
            "| größe\\|x | 1.00 GiB |   2.000 s |       - |\n");
}

TEST(Format, CsvQuotes) {
  const Table table{{{"a,b"}, {"c"}}, {{"say \"hi\"", "line\nbreak"}, {"plain", 0.1}}};
  EXPECT_EQ(render(table, Format::csv),
            "\"a,b\",c\n\"say \"\"hi\"\"\",\"line\nbreak\"\nplain,0.1\n");
  EXPECT_EQ(render(small_table(), Format::csv),
            "strategy,peak,step,mfu\nzero-2,1536,0.0125,0.5\ngröße|x,1073741824,2,\n");
}

TEST(Format, JsonKeepsTypesAndNullsNonFinite) {
  const Table table{{{"name"}, {"bytes"}, {"loss"}, {"none"}},
                    {{"x\n\"y\"", std::int64_t{9'007'199'254'740'993}, 0.1, Cell{}},
                     {"bad \xff utf-8", std::int64_t{0}, kNaN, 1.0}}};
  const Json rows = Json::parse(render(table, Format::json));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["name"], "x\n\"y\"");
  EXPECT_EQ(rows[0]["bytes"].get<std::int64_t>(), 9'007'199'254'740'993);
  EXPECT_EQ(rows[0]["loss"].get<double>(), 0.1);
  EXPECT_TRUE(rows[0]["none"].is_null());
  EXPECT_TRUE(rows[1]["loss"].is_null());
  EXPECT_EQ(render({{{"a"}}, {}}, Format::json), "[]\n");
}

TEST(Format, CellsStayOnTheirLine) {
  const Table table{{{"a", Align::left}}, {{"two\nlines\tx"}}};
  EXPECT_EQ(render(table, Format::table), "a\n-----------\ntwo lines x\n");
  EXPECT_EQ(readable("\x1b[2J\u202e\xff", Unit::none), "\\u001b[2J\\u202e\\xff");
  EXPECT_EQ(readable(1e308, Unit::bytes), "4096.00 PiB") << "the most that is shown";
}

TEST(Format, RejectsRaggedRowsAndUnknownFormats) {
  EXPECT_THROW(render({{{"a"}, {"b"}}, {{"only one"}}}, Format::csv), Error);
  EXPECT_EQ(parse_format("md"), Format::md);
  try {
    parse_format("xml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("table, wide, md, csv, json"), std::string::npos);
  }
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  return keys;
}

// The keys and their order are the contract of `zerolab run -o json`.
TEST(RunJson, HasTheContractKeysFirst) {
  RunResult run = a_full_run();
  run.run_id = 17;
  const RunResult runs[] = {run};
  const Json object = Json::parse(run_json("demo", "cpu", an_environment(), runs));
  EXPECT_EQ(keys_of(object),
            (std::vector<std::string>{"schema", "scenario", "backend", "environment", "results"}));
  const Json& result = object["results"].at(0);
  const std::vector<std::string> contract = {"strategy",
                                             "outcome",
                                             "message",
                                             "ranks",
                                             "steps",
                                             "run_id",
                                             "loss",
                                             "grad_norm",
                                             "tokens_per_second",
                                             "step_time_seconds",
                                             "model_flops_per_step",
                                             "mfu",
                                             "mfu_convention",
                                             "peak_bytes",
                                             "communication",
                                             "wire_bytes_per_step",
                                             "time_breakdown_seconds"};
  auto keys = keys_of(result);
  ASSERT_GT(keys.size(), contract.size());
  keys.resize(contract.size());
  EXPECT_EQ(keys, contract);
  EXPECT_EQ(keys_of(result["step_time_seconds"]),
            (std::vector<std::string>{"median", "min", "max"}));
  EXPECT_EQ(keys_of(result["peak_bytes"]), (std::vector<std::string>{"device", "host", "nvme"}));
  for (const char* space : {"device", "host", "nvme"}) {
    EXPECT_EQ(keys_of(result["peak_bytes"][space]),
              (std::vector<std::string>{"total", "parameter", "gradient", "optimizer", "activation",
                                        "communication", "workspace", "staging", "kv_cache"}));
  }
  EXPECT_EQ(keys_of(result["communication"].at(0)),
            (std::vector<std::string>{"collective", "group", "axis", "link", "count", "bytes"}));
  EXPECT_EQ(keys_of(result["time_breakdown_seconds"]),
            (std::vector<std::string>{"compute", "exposed_communication", "offload_stall", "bubble",
                                      "optimizer", "exposed_tensor", "exposed_pipeline"}));
}

TEST(RunJson, Values) {
  RunResult run = a_full_run();
  run.run_id = 17;
  run.loss[2] = std::numeric_limits<double>::quiet_NaN();
  const RunResult runs[] = {run, RunResult{}};
  const Json object = Json::parse(run_json("demo", "cpu", an_environment(), runs));
  EXPECT_EQ(object["schema"], 1);
  EXPECT_EQ(object["environment"]["commit"], "abc123");
  const Json& result = object["results"][0];
  EXPECT_EQ(result["outcome"], "out_of_memory");
  EXPECT_EQ(result["run_id"], 17);
  EXPECT_EQ(result["loss"], Json::parse("[5.5, 4.25, null, 0.30000000000000004]"));
  EXPECT_TRUE(result["grad_norm"][1].is_null());
  EXPECT_EQ(result["peak_bytes"]["device"]["total"], 8'000'000'000'028);
  EXPECT_EQ(result["peak_bytes"]["host"]["staging"], 2006);
  EXPECT_EQ(result["communication"][1]["link"], "nvlink");
  EXPECT_EQ(result["communication"][0]["axis"], "shard");
  EXPECT_EQ(result["rank"], 6);
  EXPECT_EQ(result["stages"][1]["peak_bytes"]["activation"], 24);
  EXPECT_EQ(result["stages"][0]["time_breakdown_seconds"]["bubble"], 0.14);
  EXPECT_EQ(result["time_breakdown_seconds"]["bubble"], 0.04);
  EXPECT_EQ(result["op_sequence_hash"], "fedcba9876543210");
  EXPECT_EQ(result["needed_bytes"]["device_fragmentation"], 1);
  EXPECT_EQ(result["fits"], "no");
  EXPECT_EQ(result["held_by_software"]["of_device_high"], 88);
  EXPECT_TRUE(object["results"][1]["held_by_software"].is_null());
  EXPECT_EQ(result["model"], "gpt2-tiny");
  EXPECT_EQ(result["tokens_per_step"], 420);
  EXPECT_EQ(result["priced_from"], "data sheet");
  const Json& empty = object["results"][1];
  EXPECT_TRUE(empty["run_id"].is_null());
  EXPECT_TRUE(empty["mfu"].is_null());
  EXPECT_EQ(empty["loss"], Json::array());
  EXPECT_EQ(empty["communication"], Json::array());
  EXPECT_EQ(Json::parse(run_json("none", "sim", {}, {}))["results"], Json::array());
}

// A script that takes the least step time must not find the one that never ran.
TEST(RunJson, WhatNeverRanHasNoNumbers) {
  RunResult run;
  run.outcome = Outcome::out_of_memory;
  run.need = {.in_use = 70, .reserved = 90, .host = 0, .nvme = 0};
  const RunResult runs[] = {run};
  const Json result = Json::parse(run_json("demo", "sim", an_environment(), runs))["results"][0];
  for (const char* key : {"tokens_per_second", "mfu", "model_flops_per_step", "wire_bytes_per_step",
                          "reserved_bytes", "op_count"}) {
    EXPECT_TRUE(result[key].is_null()) << key;
  }
  EXPECT_TRUE(result["step_time_seconds"]["median"].is_null());
  EXPECT_TRUE(result["peak_bytes"]["device"]["total"].is_null());
  EXPECT_TRUE(result["time_breakdown_seconds"]["compute"].is_null());
  EXPECT_EQ(result["needed_bytes"],
            Json::parse(R"({"device_reserved": 90, "device_in_use": 70, "device_fragmentation": 20,
                            "host": 0, "nvme": 0})"));
}

}  // namespace
}  // namespace zl::test
