// show, import, compare, devices, paths, help and the wrong command lines.
#include "results/store.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

Json json_of(const Home& home, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"-o", "json"});
  const Output output = zerolab(home, arguments);
  EXPECT_EQ(output.code, 0) << output.err;
  return Json::parse(output.out);
}

TEST(Commands, ShowModelHasTheExactParameterCount) {
  const Home home;
  EXPECT_EQ(json_of(home, {"show", "model", "gpt2-124m"})["parameters"], 124'439'808);
  EXPECT_EQ(json_of(home, {"show", "model", "llama3-8b"})["parameters"], 8'030'261'248);
}

TEST(Commands, ShowClusterMultipliesItsDevices) {
  const Home home;
  const Json cluster = json_of(home, {"show", "cluster", "1024xh100"});
  EXPECT_EQ(cluster["derived"]["nodes"], 128);
  EXPECT_EQ(cluster["devices"], 1024);
}

TEST(Commands, ShowScenarioCanBeRunAgain) {
  const Home home;
  const Output shown = zerolab(home, {"show", "scenario", data_file("tiny.json"), "-o", "json"});
  const std::string copy = home.file("tiny.json", shown.out);
  EXPECT_EQ(zerolab(home, {"show", "scenario", copy, "-o", "json"}).out, shown.out);
}

TEST(Commands, ListsNameTheCatalogue) {
  const Home home;
  EXPECT_EQ(json_of(home, {"show", "models"}).size(), 36u);
  EXPECT_CONTAINS(zerolab(home, {"show", "strategies"}).out, "zero-0");
  EXPECT_CONTAINS(zerolab(home, {"show", "studies"}).out, "demo");
  const std::string clusters = zerolab(home, {"show", "clusters"}).out;
  EXPECT_CONTAINS(clusters, "h100");
  EXPECT_CONTAINS(clusters, "TFLOP/s");
  EXPECT_CONTAINS(clusters, "TB/s");
  EXPECT_EQ(clusters.find("e+1"), std::string::npos) << "a number without a unit";
  EXPECT_GT(json_of(home, {"show", "clusters"})[0]["bf16 peak"], 1e13) << "for programs, plain";
}

TEST(Commands, AnImportedModelCanBeUsed) {
  const Home home;
  const std::string config = home.file(
      "config.json",
      R"({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 768, "n_layer": 12,
          "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
          "activation_function": "gelu_new", "layer_norm_epsilon": 1e-05})");
  const std::string model = home.path("model.json");
  EXPECT_EQ(json_of(home, {"import", "hf", config, "--save", model})["parameters"], 124'439'808);
  EXPECT_EQ(json_of(home, {"show", "model", model})["parameters"], 124'439'808);
}

// Scenarios name it only where it is off.
TEST(Commands, RunsAreDeterministicUnlessSomebodySaysOtherwise) {
  const auto stored = [](const std::vector<std::string>& flags) {
    const Home home;
    std::vector<std::string> arguments{"run",    "tiny-gpt2", "--strategy",
                                       "zero-0", "--backend", "sim"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    EXPECT_EQ(zerolab(home, arguments).code, 0);
    Store store = Store::open(home.path("zerolab/results.db"), Store::Mode::read_only);
    const Json run = Json::parse(store.scenario_json(store.list().at(0).scenario_hash))["run"];
    return run.value("deterministic", true);
  };
  EXPECT_TRUE(stored({}));
  EXPECT_TRUE(stored({"--deterministic"}));
  EXPECT_FALSE(stored({"--no-deterministic"}));
}

TEST(Commands, CompareFailsAboveItsThreshold) {
  const Home home;
  ASSERT_EQ(zerolab(home, {"run", "tiny-gpt2", "--backend", "sim"}).code, 0);
  // By closed form ZeRO-3 sends 3/2 of what ZeRO-0 sends.
  const Output other = zerolab(home, {"compare", "1", "4", "--fail-above", "5"});
  EXPECT_EQ(other.code, 2) << other.err;
  EXPECT_CONTAINS(other.out, "configured differently");
  EXPECT_CONTAINS(other.err, "strategy.zero_optimization.");
  EXPECT_CONTAINS(other.err, "--across-configurations");
  const Output worse = zerolab(
      home, {"compare", "1", "4", "--fail-above", "5", "--across-configurations", "-o", "json"});
  EXPECT_EQ(worse.code, 6) << worse.err;
  const Json pair = Json::parse(worse.out)["comparisons"][0];
  EXPECT_FALSE(pair["configured_differently"].empty());
  EXPECT_EQ(pair["b"]["strategy"], "zero-3");
  const auto& regressions = pair["regressions"];
  EXPECT_NE(std::find(regressions.begin(), regressions.end(), "wire_bytes_per_step"),
            regressions.end());
  EXPECT_EQ(
      zerolab(home, {"compare", "1", "4", "--fail-above", "100%", "--across-configurations"}).code,
      0);
  EXPECT_EQ(zerolab(home, {"compare", "zero-0", "zero-0", "--fail-above", "0%"}).code, 0);
  EXPECT_CONTAINS(refused(home, {"compare", "1", "99"}, 3), "99");
  EXPECT_CONTAINS(refused(home, {"compare", "1", "2", "--fail-above", "much"}, 2), "much");
  EXPECT_CONTAINS(refused(home, {"compare", "1", "1", "--fail-above", "0.05"}, 2), "0.05 %");
}

// The newest run of a strategy, but for both sides on one backend; what was taken is said.
TEST(Commands, CompareByNameTakesBothFromOneBackend) {
  const Home home;
  const auto run = [&](const char* backend, const char* strategy) {
    EXPECT_EQ(
        zerolab(home, {"run", data_file("tiny.json"), "--backend", backend, "--strategy", strategy})
            .code,
        0);
  };
  run("cpu", "zero-1");
  run("cpu", "zero-3");
  run("sim", "zero-3");
  const Output output = zerolab(home, {"compare", "zero-1", "zero-3"});
  EXPECT_EQ(output.code, 0) << output.err;
  EXPECT_CONTAINS(output.out, "a: zero-1 on cpu (run 1 of tiny, 20");
  EXPECT_CONTAINS(output.out, "b: zero-3 on cpu (run 2 of tiny, 20");
  EXPECT_CONTAINS(zerolab(home, {"compare", "zero-1", "zero-3", "--backend", "sim"}).err,
                  "no strategy with a stored run on sim");
}

TEST(Commands, CompareReadsWhatRunWrote) {
  const Home home;
  const Output run = zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "-o", "json"});
  const std::string a = home.file("a.json", run.out);
  const Json same = json_of(home, {"compare", a, a, "--fail-above", "0%"});
  ASSERT_EQ(same["comparisons"].size(), 5u);
  Json slower = Json::parse(run.out);
  auto& median = slower["results"][2]["step_time_seconds"]["median"];
  median = 2 * median.get<double>();
  const std::string b = home.file("b.json", slower.dump());
  const Output worse = zerolab(home, {"compare", a, b, "--fail-above", "50%"});
  EXPECT_EQ(worse.code, 6);
  EXPECT_CONTAINS(worse.err, "zero-2 on sim: step_time_seconds +100.0 %");
  EXPECT_EQ(zerolab(home, {"compare", a + ":zero-0", b + ":zero-0"}).code, 0);
  const std::string other = home.file("other.json", "{\"rows\": []}");
  EXPECT_CONTAINS(refused(home, {"compare", a, other}, 3), "zerolab run -o json");
}

// What two predictions share of their errors is no reason to doubt which is faster.
TEST(Commands, CompareHasABarOfTheRatioOfTwoPredictions) {
  const Home home;
  const std::vector<std::string> run{"run", "llama3-8b", "--cluster", "8xh100", "--strategy"};
  for (const char* strategy : {"zero-2", "zero-3", "zero-3-recompute"}) {
    auto arguments = run;
    arguments.emplace_back(strategy);
    ASSERT_EQ(zerolab(home, arguments).code, 0);
  }
  const Output near = zerolab(home, {"compare", "1", "2"});
  EXPECT_CONTAINS(near.out, "A step of b takes 1.01x, 0.8");
  EXPECT_CONTAINS(near.out, "not decided (9 times out of 10; errors that both share cancel).");
  const Json far = json_of(home, {"compare", "1", "3"})["comparisons"][0]["step_ratio"];
  EXPECT_EQ(far["decided"], far["low"] > 1);
  EXPECT_LT(far["low"], far["value"]);
  EXPECT_LT(far["value"], far["high"]);
  ASSERT_EQ(zerolab(home, {"run", data_file("tiny.json"), "--strategy", "zero-1"}).code, 0);
  EXPECT_EQ(json_of(home, {"compare", "4", "4"})["comparisons"][0]["step_ratio"], nullptr)
      << "both were measured";
}

TEST(Commands, DevicesSayWhyABackendIsMissing) {
  const Home home;
  const Json devices = json_of(home, {"devices"});
  EXPECT_GE(devices["cores"], 1);
  EXPECT_GE(devices["backends"].size(), 3u);
  for (const Json& backend : devices["backends"]) {
    EXPECT_EQ(backend["available"].get<bool>(), backend["why"].is_null());
  }
}

TEST(Commands, GuessedTimesAreCalledGuessesUntilThereIsALocalCluster) {
  const Home home;
  const std::vector<std::string> run{"run", "tiny-gpt2", "--backend", "sim", "--no-db"};
  EXPECT_CONTAINS(zerolab(home, run).err, "run `zerolab calibrate`");
  Json local = json_of(home, {"show", "cluster", "local"});
  EXPECT_EQ(local["derived"]["calibrated"], false);
  local.erase("derived");
  std::filesystem::create_directories(home.path("zerolab"));
  home.file("zerolab/local.json", local.dump());
  EXPECT_EQ(zerolab(home, run).err.find("calibrate"), std::string::npos);
}

TEST(Commands, SimulatedGpusSayWhoseSpeedTheyHave) {
  const Home home;
  const std::vector<std::string> command = {"run",        "gpt2-124m", "--cluster", "8xa100-80",
                                            "--strategy", "zero-0",    "-o",        "json"};
  const Output unsaid = zerolab(home, command);
  EXPECT_CONTAINS(unsaid.err, "as fast as torch-fsdp2-compile (--software");
  const auto under = [&](const char* software) {
    std::vector<std::string> with_software = command;
    with_software.insert(with_software.end(), {"--software", software});
    return zerolab(home, with_software);
  };
  const Output own = under("zerolab"), eager = under("torch-fsdp2");
  EXPECT_CONTAINS(eager.err, "as fast as torch-fsdp2\n");
  const auto step = [](const Output& output) -> double {
    return Json::parse(output.out)["results"][0]["step_time_seconds"]["median"];
  };
  EXPECT_GT(step(eager), 2 * step(own)) << "a small model waits for the host";
  const auto result = [](const Output& output) { return Json::parse(output.out)["results"][0]; };
  EXPECT_FALSE(result(own).contains("software_bytes")) << "what this core holds is exact";
  EXPECT_EQ(result(own)["peak_bytes"], result(eager)["peak_bytes"]);
  const Json bytes = result(eager)["software_bytes"];
  EXPECT_EQ(bytes["software"], "torch-fsdp2");
  EXPECT_LT(bytes["low"], bytes["total"]);
  EXPECT_LT(bytes["total"], bytes["high"]);
  EXPECT_LT(bytes["total"], bytes["of_device"]);
  EXPECT_EQ(step(unsaid), step(under("torch-fsdp2-compile")));
  EXPECT_EQ(Json::parse(unsaid.out)["results"][0]["software"], "torch-fsdp2-compile");
  const Json stored = json_of(home, {"runs"});
  const auto unsaid_too = [](const Json& run) { return run["software"] == "torch-fsdp2-compile"; };
  EXPECT_EQ(std::count_if(stored.begin(), stored.end(), unsaid_too), 2) << stored;
  EXPECT_CONTAINS(zerolab(home, {"runs"}).out, "software") << "they differ in nothing else";
}

TEST(Commands, ExplainSaysWhereTheTimeAndTheBytesGo) {
  const Home home;
  const std::vector<std::string> command = {"explain", "llama3-8b",  "--cluster",
                                            "8xh100",  "--strategy", "zero-3"};
  const Output table = zerolab(home, command);
  EXPECT_EQ(table.code, 0) << table.err;
  for (const char* part : {"twice", "memory bandwidth", "adam_step", "nvlink4", "mlp up",
                           "torch-fsdp2-compile itself would hold", "gradients of logits"}) {
    EXPECT_CONTAINS(table.out, part);
  }
  const Json all = json_of(home, command);
  EXPECT_EQ(all["software"], "torch-fsdp2-compile");
  std::int64_t held = 0;
  for (const Json& part : all["software_peak"]) held += part["bytes"].get<std::int64_t>();
  EXPECT_EQ(held, all["software_bytes"]["total"]);
  double shares = 0;
  for (const Json& part : all["parts"]) shares += part["share"].get<double>();
  EXPECT_NEAR(shares, 1, 1e-9);
  std::vector<std::string> as = command;
  as.insert(as.end(), {"-o", "csv"});
  EXPECT_CONTAINS(refused(home, as, 2), "csv");
}

TEST(Commands, TheGpusOfThisMachineAreAClusterOnceTheyAreMeasured) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"show", "cluster", "local-cuda"}, 3),
                  "zerolab calibrate --backend cuda");
  Json measured = json_of(home, {"show", "cluster", "h200"});
  measured.erase("derived");
  measured["name"] = "local-cuda";
  measured["device"]["memory_bandwidth"] = 1e12;
  std::filesystem::create_directories(home.path("zerolab"));
  home.file("zerolab/local-cuda.json", measured.dump());
  const Json shown = json_of(home, {"show", "cluster", "local-cuda"});
  EXPECT_EQ(shown["device"]["memory_bandwidth"], 1e12);
  const Json run = json_of(home, {"run", "gpt2-124m", "--cluster", "local-cuda", "--backend", "sim",
                                  "--strategy", "zero-0", "--ranks", "1", "--no-db"});
  EXPECT_EQ(run["results"][0]["outcome"], "ok");
}

TEST(Commands, CalibrateRefusesWhatItCannotMeasure) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"calibrate", "--ranks", "0"}, 3), "--ranks: 0");
  EXPECT_CONTAINS(refused(home, {"calibrate", "--steps", "1"}, 3), "--steps: 1");
  refused(home, {"calibrate", "--backend", "sim"}, 2);
  EXPECT_CONTAINS(refused(home, {"calibrate", "--backend", "cuda", "--moments", "quiet"}, 2),
                  "--moments: quiet");
  EXPECT_CONTAINS(refused(home, {"calibrate", "--moments", "silent"}, 2), "'silent'");
  EXPECT_CONTAINS(
      refused(home,
              {"calibrate", "--runs", "published", "--software", "llm.c", "--moments", "quiet"}, 2),
      "--runs excludes --moments");
}

TEST(Commands, PathsFollowTheEnvironment) {
  const Home home;
  const Json paths = json_of(home, {"paths"});
  EXPECT_EQ(paths["database"], home.path("zerolab/results.db"));
  EXPECT_EQ(paths["local_cluster"], home.path("zerolab/local.json"));
  EXPECT_EQ(paths["local_cuda_cluster"], home.path("zerolab/local-cuda.json"));
}

TEST(Commands, HelpAndVersionSucceed) {
  const Home home;
  EXPECT_EQ(zerolab(home, {"--help"}).code, 0);
  EXPECT_CONTAINS(zerolab(home, {"run", "--help"}).out, "--device-memory");
  const std::string calibrate = zerolab(home, {"calibrate", "--help"}).out;
  EXPECT_CONTAINS(calibrate, "--nvme-path");
  EXPECT_EQ(calibrate.find("--tiny"), std::string::npos);  // for the dry run of the acceptance
  EXPECT_CONTAINS(zerolab(home, {"--version"}).out, "zerolab 0.");
}

TEST(Commands, HelpIsACommandTooAndHasExamples) {
  const Home home;
  const Output help = zerolab(home, {"help", "run"});
  EXPECT_EQ(help.code, 0) << help.err;
  EXPECT_EQ(help.out, zerolab(home, {"run", "--help"}).out);
  EXPECT_CONTAINS(help.out, "Examples:\n");
  EXPECT_CONTAINS(help.out, "  zerolab run demo\n");
  for (const char* noise : {"INT:INT", "{false}", "Excludes"}) {
    EXPECT_EQ(help.out.find(noise), std::string::npos) << noise;
  }
  EXPECT_EQ(zerolab(home, {"help", "show", "model"}).out,
            zerolab(home, {"show", "model", "--help"}).out);
  EXPECT_CONTAINS(refused(home, {"help", "rnu"}, 2), "there is no command \"rnu\"");
}

TEST(Commands, CompletionIsOfWhatTheParserKnows) {
  const Home home;
  const auto of = [&](const char* shell) { return zerolab(home, {"completion", shell}).out; };
  for (const char* shell : {"bash", "zsh", "fish"}) {
    EXPECT_CONTAINS(of(shell), "require-fit");
    EXPECT_CONTAINS(of(shell), "zerolab show");
    EXPECT_CONTAINS(of(shell),
                    "zerolab deepspeed megatron torchtitan torchtitan-python accelerate");
  }
  EXPECT_CONTAINS(of("bash"), "--model) list=$(_zerolab_names models) ;;");
  EXPECT_CONTAINS(of("fish"), "-a run -d 'Run a scenario\\'s strategies and compare them'");
  EXPECT_CONTAINS(of("zsh"), "'run:Run a scenario'\\''s strategies and compare them'");
  EXPECT_CONTAINS(refused(home, {"completion", "tcsh"}, 2), "is not one of bash, zsh, fish");
}

TEST(Commands, WhatTimesRestOnIsInEveryResult) {
  const Home home;
  const std::vector<std::string> local{"run", "tiny-gpt2", "--backend", "sim", "--no-db"};
  EXPECT_CONTAINS(zerolab(home, local).out, "Times are guesses: this machine is not calibrated");
  EXPECT_EQ(json_of(home, local)["results"][0]["priced_from"], "guess");
  const std::vector<std::string> sheet{"run",        "gpt2-124m", "--cluster", "a100-80",
                                       "--strategy", "zero-0",    "--no-db",   "--software"};
  const auto with = [&](const std::string& software) {
    std::vector<std::string> line = sheet;
    line.push_back(software);
    return line;
  };
  EXPECT_EQ(json_of(home, with("megatron-deepspeed-2021"))["results"][0]["priced_from"],
            "data sheet");
  // Of a profile that no published run on such GPUs supports.
  EXPECT_EQ(json_of(home, with("torch-ddp"))["results"][0]["priced_from"], "no published run");
  EXPECT_CONTAINS(zerolab(home, with("torch-ddp")).out,
                  "no published run of this software on such GPUs under such a strategy");
}

TEST(Commands, QuietLeavesOnlyData) {
  const Home home;
  const Output output = zerolab(home, {"run", "tiny-gpt2", "--backend", "sim", "--quiet"});
  EXPECT_EQ(output.code, 0);
  EXPECT_EQ(output.err, "");
}

TEST(WrongCommandLine, NamesTheNearest) {
  const Home home;
  EXPECT_EQ(refused(home, {}, 2).find("zerolab: error: a command is missing. Commands: "), 0u);
  EXPECT_CONTAINS(refused(home, {"rnu", "demo"}, 2), "the nearest is \"run\"");
  EXPECT_CONTAINS(refused(home, {"show", "modle", "x"}, 2), "the nearest is \"model\"");
  EXPECT_CONTAINS(refused(home, {"run", "demo", "--stpes", "3"}, 2), "the nearest is \"--steps\"");
  EXPECT_CONTAINS(refused(home, {"run", "demo", "more"}, 2), "more");
  EXPECT_CONTAINS(refused(home, {"run", "tiny-gtp2"}, 3), "tiny-gpt2");
  EXPECT_CONTAINS(refused(home, {"run", "tiny-gpt2", "--strategy", "zero-4"}, 3), "zero-");
}

TEST(WrongCommandLine, IsAlwaysExitCode2) {
  const Home home;
  refused(home, {}, 2);
  refused(home, {"run"}, 2);
  refused(home, {"show", "model"}, 2);
  refused(home, {"run", "demo", "--ranks", "many"}, 2);
  refused(home, {"run", "demo", "-o", "xml"}, 2);
  refused(home, {"run", "demo", "--backend", "tpu"}, 2);
  refused(home, {"run", "demo", "--no-db", "--db", "x.db"}, 2);
  refused(home, {"train", "tiny-gpt2", "--backend", "sim", "--save", "x.safetensors"}, 2);
}

}  // namespace
}  // namespace zl::cli_test
