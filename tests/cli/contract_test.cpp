// The keys that `zerolab run -o json` promises, and the other commands' output.
#include <cmath>
#include <set>

#include "results/store.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

Json run_object(const Home& home, std::vector<std::string> arguments, int code = 0) {
  arguments.insert(arguments.end(), {"-o", "json"});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, code) << output.err;
  return Json::parse(output.out);
}

void expect_keys(const Json& object, const std::set<std::string>& keys, const std::string& where) {
  for (const std::string& key : keys) EXPECT_TRUE(object.contains(key)) << where << "." << key;
}

void expect_contract(const Json& run) {
  expect_keys(run, {"schema", "scenario", "backend", "environment", "results"}, "");
  EXPECT_EQ(run["schema"], 1);
  ASSERT_FALSE(run["results"].empty());
  for (const Json& result : run["results"]) {
    expect_keys(
        result,
        {"strategy", "outcome", "message", "ranks", "steps", "run_id", "loss", "grad_norm",
         "tokens_per_second", "step_time_seconds", "model_flops_per_step", "mfu", "mfu_convention",
         "peak_bytes", "communication", "wire_bytes_per_step", "time_breakdown_seconds"},
        "results");
    expect_keys(result["step_time_seconds"], {"median", "min", "max"}, "step_time_seconds");
    expect_keys(result["peak_bytes"], {"device", "host", "nvme"}, "peak_bytes");
    const Json& device = result["peak_bytes"]["device"];
    const std::set<std::string> tags{"parameter",     "gradient",  "optimizer", "activation",
                                     "communication", "workspace", "staging"};
    expect_keys(device, tags, "device");
    std::int64_t sum = 0;
    const bool ran = result["outcome"] == "ok" || result["steps"] > 0;
    for (const std::string& tag : tags) {
      ASSERT_EQ(device[tag].is_null(), !ran) << tag;
      if (ran) sum += device[tag].get<std::int64_t>();
    }
    EXPECT_EQ(device["total"], ran ? Json(sum) : Json());
    for (const Json& each : result["communication"]) {
      expect_keys(each, {"collective", "group", "axis", "link", "count", "bytes"}, "communication");
    }
    expect_keys(result["time_breakdown_seconds"],
                {"compute", "exposed_communication", "offload_stall", "bubble", "optimizer",
                 "exposed_tensor", "exposed_pipeline"},
                "time_breakdown_seconds");
  }
}

TEST(Contract, SimulatedTinyStudy) {
  const Home home;
  const Json run = run_object(home, {"run", "tiny-gpt2", "--backend", "sim"});
  expect_contract(run);
  EXPECT_EQ(run["scenario"], "tiny-gpt2");
  EXPECT_EQ(run["backend"], "sim");
  ASSERT_EQ(run["results"].size(), 5u);
  std::int64_t id = 0;
  for (const Json& result : run["results"]) {
    EXPECT_EQ(result["outcome"], "ok");
    EXPECT_EQ(result["ranks"], 2);
    EXPECT_EQ(result["steps"], 3);
    for (const char* none : {"loss", "grad_norm", "learning_rate", "loss_scale"}) {
      EXPECT_TRUE(result[none].empty()) << none << ": nothing was trained";
    }
    EXPECT_EQ(result["step_seconds"].size(), 3u);
    EXPECT_EQ(result["first_step"], 0);
    EXPECT_EQ(result["run_id"], ++id);
    EXPECT_GT(result["step_time_seconds"]["median"], 0);
  }
}

TEST(Contract, WhatWasNotMeasuredIsEmptyInCsvAndInTheDatabase) {
  const Home home;
  const Output csv =
      zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-2", "-o", "csv"});
  EXPECT_EQ(csv.code, 0) << csv.err;
  EXPECT_CONTAINS(csv.out, "zero-2,sim,ok,,2,3,1,,");
  const Output memory = zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--strategy",
                                       "zero-0", "--device-memory", "1MiB", "-o", "csv"});
  EXPECT_EQ(memory.code, 4) << memory.err;
  EXPECT_CONTAINS(memory.out, ",,,,,,,,,,,,,,,");
  EXPECT_CONTAINS(memory.out, ",1048576,gpt2-tiny,local,,fp32,");
  const Output compared = zerolab(home, {"compare", "zero-2", "zero-0"});
  EXPECT_CONTAINS(compared.out, "b: zero-0 on sim, out_of_memory (run 2 of tiny-gpt2, ");
  EXPECT_EQ(compared.out.find("-100"), std::string::npos) << compared.out;
  EXPECT_EQ(compared.out.find("nan"), std::string::npos) << compared.out;
  const Output back = zerolab(home, {"compare", "zero-0", "zero-2"});
  EXPECT_EQ(back.out.find("inf"), std::string::npos) << back.out;
  Store store = Store::open(home.path("zerolab/results.db"), Store::Mode::read_only);
  for (const RunSummary& run : store.list()) EXPECT_TRUE(std::isnan(run.final_loss));
}

TEST(Contract, A175BillionParameterModelOnManyGpusIsSimulatedWithoutBeingAsked) {
  const Home home;
  // With recomputation the activations of 96 blocks fit 80 GB; without, the answer is that they
  // do not.
  const std::vector<std::string> base{"run", "gpt3-175b", "--cluster", "1024xh100", "--strategy"};
  const auto with = [&](const char* strategy) {
    auto arguments = base;
    arguments.push_back(strategy);
    return arguments;
  };
  const Json run = run_object(home, with("zero-3-recompute"));
  expect_contract(run);
  EXPECT_EQ(run["backend"], "sim");
  EXPECT_EQ(run["results"][0]["ranks"], 1024);
  EXPECT_EQ(run["results"][0]["outcome"], "ok");
  EXPECT_GT(run["results"][0]["mfu"], 0);
  EXPECT_LE(run["results"][0]["peak_bytes"]["device"]["total"], 80LL << 30);
  auto arguments = with("zero-3");
  arguments.insert(arguments.end(), {"-o", "json"});
  const Output large = zerolab(home, arguments);
  EXPECT_EQ(large.code, 4);
  const Json refused = Json::parse(large.out);
  expect_contract(refused);
  EXPECT_EQ(refused["results"][0]["outcome"], "out_of_memory");
  EXPECT_CONTAINS(refused["results"][0]["message"].get<std::string>(),
                  "GiB more than the device's 80.00 GiB");
  EXPECT_CONTAINS(large.err, "--backend sim");
  const Json& result = refused["results"][0];
  EXPECT_GT(result["needed_bytes"]["device_reserved"], 80LL << 30);
  EXPECT_EQ(result["device_capacity_bytes"], 80LL << 30);
  EXPECT_TRUE(result["tokens_per_second"].is_null());
  EXPECT_EQ(result["tokens_per_step"], 1024 * 2048);
}

// The answer is complete although two of five do not fit; scripts under `set -e` go on.
TEST(Contract, WhatDoesNotFitIsNoFailureOfTheComparison) {
  const Home home;
  const std::vector<std::string> five{"run", "llama3-8b", "--cluster", "8xh100", "--no-db"};
  const Output all = zerolab(home, five);
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_CONTAINS(all.out, "llama3-8b on 8xh100, 8 ranks, bf16, sequences of 8192, micro-batch 1");
  EXPECT_CONTAINS(all.out, "65536 tokens a step");
  EXPECT_CONTAINS(all.out, "-147.74 GiB") << "headroom";
  EXPECT_CONTAINS(all.out, "data sheets");
  EXPECT_CONTAINS(all.out, "Fastest: zero-2. Step times beside it (errors that both share cancel)");
  EXPECT_CONTAINS(all.out, "zero-3 1.01x, 0.8");
  EXPECT_CONTAINS(
      all.err,
      "zero-0 on sim: does not fit into 80.00 GiB: torch-fsdp2-compile would hold 227.74 GiB");
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), five.begin(), five.end());
    return zerolab(home, more).code;
  };
  EXPECT_EQ(with({"--require-fit"}), 4);
  EXPECT_EQ(with({"--strategy", "zero-0"}), 4) << "none fits";
  EXPECT_EQ(with({"--strategy", "zero-2", "--require-fit"}), 0);
}

TEST(Contract, NumbersOfStagesAreOneValueOfAList) {
  const Home home;
  const Json all =
      run_object(home, {"run", "gpt2-124m", "--cluster", "2xh100", "--strategy", "zero-0",
                        "--pipeline", "2", "--gradient-accumulation", "4", "--sequence-length",
                        "1k", "--recompute", "none,blocks:3,0,full"});
  std::vector<std::string> names;
  for (const Json& run : all) names.push_back(run["results"][0]["strategy"]);
  EXPECT_EQ(names, (std::vector<std::string>{"zero-0+recompute-none+pp2",
                                             "zero-0+recompute-blocks-3-0+pp2",
                                             "zero-0+recompute-full+pp2"}));
}

TEST(Contract, ListsOfValuesAreOneTable) {
  const Home home;
  const std::vector<std::string> sweep{
      "run",    "gpt2-124m",     "--cluster", "1xh100,1xa100-80",  "--strategy",
      "zero-0", "--micro-batch", "1,2",       "--sequence-length", "1k"};
  const Output table = zerolab(home, sweep);
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_CONTAINS(table.out,
                  "gpt2-124m, 1 rank, bf16, sequences of 1024, as fast as torch-fsdp2-compile\n");
  EXPECT_CONTAINS(table.out, "strategy  cluster    micro-batch  tokens/step");
  const Json all = run_object(home, sweep);
  ASSERT_EQ(all.size(), 4u);
  std::set<std::string> told;
  for (const Json& run : all) {
    expect_contract(run);
    const Json& result = run["results"][0];
    told.insert(result["cluster"].get<std::string>() + result["micro_batch"].dump());
  }
  EXPECT_EQ(told.size(), 4u);
  Store store = Store::open(home.path("zerolab/results.db"), Store::Mode::read_only);
  std::set<std::string> hashes;
  for (const RunSummary& run : store.list()) {
    hashes.insert(run.scenario_hash);
    EXPECT_EQ(store.load(run.id).setup.model, "gpt2-124m");
  }
  EXPECT_EQ(hashes.size(), 4u) << "stored runs are told apart";
  EXPECT_CONTAINS(refused(home, {"train", "gpt2-tiny", "--micro-batch", "1,2"}, 2),
                  "--micro-batch: several values are for `zerolab run`; give one");
}

TEST(Contract, SoftwareIsSweptLikeTheRest) {
  const Home home;
  const Output table = zerolab(home, {"run", "gpt2-124m", "--cluster", "h200", "--strategy",
                                      "zero-0", "--software", "zerolab,torch-fsdp2", "--no-db"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_CONTAINS(table.out, "zero-0    zerolab ");
  EXPECT_CONTAINS(table.out, "zero-0    torch-fsdp2");
}

TEST(Contract, BothBackendsStandSideBySideAndAgree) {
  const Home home;
  const Json both = run_object(home, {"run", data_file("tiny.json"), "--backend", "cpu,sim"});
  ASSERT_EQ(both.size(), 2u);
  for (const Json& run : both) expect_contract(run);
  EXPECT_EQ(both[0]["backend"], "cpu");
  EXPECT_EQ(both[1]["backend"], "sim");
  for (std::size_t i = 0; i < 2; ++i) {
    const Json &real = both[0]["results"][i], &twin = both[1]["results"][i];
    EXPECT_EQ(real["outcome"], "ok");
    EXPECT_EQ(real["strategy"], twin["strategy"]);
    EXPECT_EQ(real["peak_bytes"], twin["peak_bytes"]);
    EXPECT_EQ(real["wire_bytes_per_step"], twin["wire_bytes_per_step"]);
  }
  const Output table = zerolab(home, {"run", data_file("tiny.json"), "--backend", "cpu,sim"});
  EXPECT_CONTAINS(table.out, "Predicted against measured");
}

TEST(Contract, TrainingPrintsALinePerStepAndSavesTheWeights) {
  const Home home;
  const std::string weights = home.path("weights.safetensors");
  const Output output =
      zerolab(home, {"train", data_file("tiny.json"), "--strategy", "zero-3", "--save", weights});
  EXPECT_EQ(output.code, 0) << output.err;
  for (const char* part : {"step 1/3", "step 3/3", "loss", "norm", "lr", "tokens/s", "MFU",
                           "6N+12Lhs", "stored as run 1"}) {
    EXPECT_CONTAINS(output.out, part);
  }
  // 120,576 fp32 parameters of gpt2-tiny behind a header.
  EXPECT_GT(std::filesystem::file_size(weights), 4u * 120'576u);
  EXPECT_LT(std::filesystem::file_size(weights), 4u * 120'576u + 8192u);
  const Output json = zerolab(home, {"train", data_file("tiny.json"), "-o", "json", "--no-db"});
  const Json run = Json::parse(json.out);
  expect_contract(run);
  EXPECT_TRUE(run["results"][0]["run_id"].is_null());
  EXPECT_CONTAINS(json.err, "step 3/3");
}

TEST(Contract, EpochsAndValidationAreOfTheData) {
  const Home home;
  std::string text;
  for (int i = 0; i < 4000; ++i) text += "to be or not to be ";
  const std::string data = home.file("train.txt", text), held = home.file("held.txt", text);
  const auto train = [&](std::vector<std::string> more) {
    std::vector<std::string> all{
        "train", data_file("tiny.json"), "--strategy", "zero-3", "--data", data, "--no-db"};
    all.insert(all.end(), more.begin(), more.end());
    return zerolab(home, all);
  };
  const Output epoch = train(
      {"--epochs", "0.25", "--eval-data", held, "--eval-samples", "40", "--warmup-steps", "5"});
  ASSERT_EQ(epoch.code, 0) << epoch.err;
  EXPECT_CONTAINS(epoch.err, "0.25 epochs of 76000 tokens are ");
  const std::size_t at = epoch.out.find("validation loss ");
  ASSERT_NE(at, std::string::npos) << epoch.out;
  const double validated = std::stod(epoch.out.substr(at + 16));
  const Json run =
      Json::parse(train({"--epochs", "0.25", "--warmup-steps", "5", "-o", "json"}).out);
  const Json& result = run["results"][0];
  EXPECT_EQ(result["steps"], std::ceil(0.25 * 76000 / result["tokens_per_step"].get<double>()));
  EXPECT_NEAR(validated, result["loss"].back().get<double>(), 0.3) << "of the same sentence";
  EXPECT_LT(result["learning_rate"][0], result["learning_rate"][5]);
  EXPECT_EQ(train({"--epochs", "1", "--steps", "3"}).code, 2);
  EXPECT_CONTAINS(refused(home, {"train", "tiny-gpt2", "--data", "synthetic", "--epochs", "1"}, 2),
                  "--epochs: synthetic data has no end");
  EXPECT_CONTAINS(refused(home, {"train", "tiny-gpt2", "--eval-every", "3"}, 3), "run.eval_data");
  EXPECT_CONTAINS(refused(home, {"train", "tiny-gpt2", "--eval-data", "synthetic"}, 3),
                  "run.eval_data: synthetic data have no end");
}

// A rate far too high: what the model ends with is worse than what it began with.
TEST(Contract, TheBestModelByTheValidationIsTheOneThatIsSaved) {
  const Home home;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "to be or not to be ";
  const std::string data = home.file("train.txt", text), folder = home.path("best");
  const Output run = zerolab(home, {"train",          data_file("tiny.json"),
                                    "--strategy",     "zero-3",
                                    "--data",         data,
                                    "--eval-data",    data,
                                    "--eval-every",   "2",
                                    "--eval-samples", "16",
                                    "--lr",           "10",
                                    "--steps",        "6",
                                    "--keep-going",   "--save",
                                    folder,           "-o",
                                    "json",           "--no-db"});
  ASSERT_EQ(run.code, 0) << run.err;
  const Json evaluation = Json::parse(run.out)["results"][0]["evaluation"];
  ASSERT_EQ(evaluation["points"].size(), 4u);
  const std::int64_t best = evaluation["best_step"];
  ASSERT_LT(best, 6);
  EXPECT_CONTAINS(run.err, "as it was after step " + std::to_string(best));
  const Json& point = evaluation["points"][static_cast<std::size_t>(best) / 2];
  const Output judged = zerolab(
      home, {"evaluate", "--model", folder, "--eval-data", data, "--eval-samples", "16",
             "--sequence-length", Json::parse(run.out)["results"][0]["sequence_length"].dump(),
             "--ranks", "2", "-o", "json"});
  ASSERT_EQ(judged.code, 0) << judged.err;
  EXPECT_NEAR(Json::parse(judged.out)["loss"].get<double>(), point["loss"].get<double>(), 1e-5);
  EXPECT_EQ(Json::parse(judged.out)["tokens"], point["tokens"]);
}

TEST(Contract, EvaluateCountsWholeTextsInBits) {
  const Home home;
  const std::string text(500, 'a');
  const std::string data = home.file("a.txt", text);
  const Output all =
      zerolab(home, {"evaluate", data_file("tiny.json"), "--eval-data", data, "-o", "json"});
  ASSERT_EQ(all.code, 0) << all.err;
  const Json found = Json::parse(all.out);
  EXPECT_EQ(found["tokens"], 499);
  EXPECT_NEAR(found["bits_per_byte"].get<double>(),
              found["loss"].get<double>() * 499 / 500 / std::log(2.0), 1e-9);
  EXPECT_NEAR(found["perplexity"].get<double>(), std::exp(found["loss"].get<double>()), 1e-9);
  EXPECT_CONTAINS(refused(home, {"evaluate", data_file("tiny.json")}, 2), "--eval-data");
  EXPECT_CONTAINS(refused(home,
                          {"evaluate", data_file("tiny.json"), "--eval-data", data,
                           "--sequence-length", "16", "--eval-stride", "17"},
                          3),
                  "run.eval_stride: 17 is above the sequence length 16");
}

TEST(Contract, TuneSortsItsTrialsAndStoresThem) {
  const Home home;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "to be or not to be ";
  const std::string data = home.file("train.txt", text);
  const std::vector<std::string> base{"tune", data_file("tiny.json"), "--data", data, "--eval-data",
                                      data,   "--eval-samples",       "16"};
  const auto tune = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return zerolab(home, more);
  };
  const Output trials = tune({"--lr", "1e-9,1e-2,1e-8,1e-7", "--steps", "10", "-o", "json"});
  ASSERT_EQ(trials.code, 0) << trials.err;
  const Json rows = Json::parse(trials.out);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["lr"], "1e-2");
  EXPECT_LT(rows[0]["validation_loss"], rows[1]["validation_loss"]);
  std::size_t early = 0;
  for (const Json& row : rows)
    early += row["outcome"].get<std::string>().starts_with("ended early");
  EXPECT_EQ(early, 2u) << "the first two run to their end";
  EXPECT_CONTAINS(trials.err, "the best: --lr 1e-2");
  EXPECT_CONTAINS(zerolab(home, {"runs", "--tag", "tune"}).out, "lr-0.01");
  const Output finder = tune({"--find-lr", "--steps", "60", "-o", "json"});
  ASSERT_EQ(finder.code, 0) << finder.err;
  const Json curve = Json::parse(finder.out);
  EXPECT_NEAR(curve["learning_rate"][0].get<double>(), 1e-7, 1e-15);
  EXPECT_GT(curve["steepest"].get<double>(), 1e-5);
  EXPECT_LT(curve["steepest"].get<double>(), 1);
  EXPECT_CONTAINS(refused(home, {"tune", "tiny-gpt2", "--eval-data", data}, 2), "--find-lr");
  EXPECT_CONTAINS(refused(home, {"tune", "tiny-gpt2", "--lr", "1,2"}, 2), "--eval-data");
}

TEST(Contract, LossScaleIsPrintedForFp16) {
  const Home home;
  const Output output = zerolab(home, {"train", data_file("tiny.json"), "--precision", "fp16"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_CONTAINS(output.out, "scale 65536");
}

TEST(Contract, TheDeepSpeedExampleRunsAsItStands) {
  const Home home;
  const std::string file = data_file("deepspeed.json");
  const Output output =
      zerolab(home, {"run", data_file("tiny.json"), "--strategy", file, "-o", "json"});
  EXPECT_EQ(output.code, 0) << output.err;
  const Json run = Json::parse(output.out);
  EXPECT_EQ(run["results"][0]["outcome"], "ok");
  EXPECT_EQ(run["results"][0]["strategy"], "deepspeed");
  EXPECT_CONTAINS(output.err, "AdamW");
  EXPECT_CONTAINS(output.err, "DeepSpeed itself ignores this key");
  const Output shown = zerolab(home, {"show", "strategy", file, "-o", "json"});
  EXPECT_EQ(shown.code, 0);
  const Json effects = Json::parse(shown.out)["effects"];
  EXPECT_EQ(effects[0]["key"], "train_batch_size");
  for (const Json& effect : effects) {
    expect_keys(effect, {"key", "given", "effective", "status", "why"}, "effects");
  }
  const Output imported = zerolab(home, {"import", "deepspeed", file, "--ranks", "2"});
  EXPECT_EQ(imported.code, 0);
  EXPECT_EQ(Json::parse(imported.out)["train_micro_batch_size_per_gpu"], 2);
  EXPECT_CONTAINS(imported.err, "gradient_checkpointing");
}

// fp16 from a scale that overflows: what is recorded is the run that skipped steps, whichever was
// asked for first, and the result says so.
TEST(Contract, TheRecordingOfAnFp16RunSkipsItsSteps) {
  const Home home;
  const Json run = run_object(home, {"run", data_file("fp16_skips.json"), "--backend", "sim,cpu"});
  const Json &twin = run[0]["results"][0], &real = run[1]["results"][0];
  ASSERT_GT(real["skipped_steps"], 0);
  ASSERT_LT(real["skipped_steps"], real["steps"]);
  EXPECT_EQ(twin["skipped_steps"], real["skipped_steps"]);
  for (const char* key : {"wire_bytes_per_step", "op_sequence_hash", "op_count", "peak_bytes"}) {
    EXPECT_EQ(twin[key], real[key]) << key;
  }
  EXPECT_CONTAINS(twin["warnings"].dump(), "which the run that it is compared with skipped");
}

// One command after the other: the run is found in the database.
TEST(Contract, TheRecordingOfAStoredFp16RunSkipsItsSteps) {
  const Home home;
  const auto run = [&](const char* backend) {
    return run_object(home, {"run", data_file("fp16_skips.json"), "--software", "zerolab",
                             "--backend", backend})["results"][0];
  };
  const Json real = run("cpu"), twin = run("sim");
  ASSERT_GT(real["skipped_steps"], 0);
  EXPECT_EQ(twin["skipped_steps"], real["skipped_steps"]);
  EXPECT_EQ(twin["op_sequence_hash"], real["op_sequence_hash"]);
  EXPECT_CONTAINS(twin["warnings"].dump(), "which the run that it is compared with skipped");
}

}  // namespace
}  // namespace zl::cli_test
