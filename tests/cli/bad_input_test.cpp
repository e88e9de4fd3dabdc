// Bad input: each case is refused with the key or file, the value and the fix.
#include <sqlite3.h>

#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

// A scenario of gpt2-tiny with one more member in place of `extra`.
std::string scenario(const Home& home, const std::string& extra) {
  return home.file("scenario.json", R"({"schema": 1, "model": "gpt2-tiny", "run": {"ranks": 2,
    "steps": 2, "data": "synthetic"})" + std::string(extra.empty() ? "" : ", ") +
                                        extra + "}");
}

std::string refused_strategy(const std::string& strategy) {
  const Home home;
  return refused(home, {"run", scenario(home, "\"strategies\": [" + strategy + "]")}, 3);
}

std::string refused_data(const Home& home, const std::string& data) {
  return refused(home, {"run", "tiny-gpt2", "--data", data, "--strategy", "zero-0"}, 3);
}

TEST(BadInput, UnknownKeyAtTheTop) {
  const Home home;
  const std::string message = refused(home, {"run", scenario(home, R"("modle": 1)")}, 3);
  EXPECT_CONTAINS(message, "modle");
  EXPECT_CONTAINS(message, "model");
}

TEST(BadInput, UnknownKeyNested) {
  const std::string message = refused_strategy(R"({"zero_optimization": {"stagee": 2}})");
  EXPECT_CONTAINS(message, "zero_optimization.stagee");
  EXPECT_CONTAINS(message, "stage");
}

TEST(BadInput, StageFour) {
  EXPECT_CONTAINS(refused_strategy(R"({"zero_optimization": {"stage": 4}})"),
                  "strategy.zero_optimization.stage: 4 is not one of 0, 1, 2, 3");
}

TEST(BadInput, Fp16AndBf16) {
  const std::string message =
      refused_strategy(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})");
  EXPECT_CONTAINS(message, "fp16");
  EXPECT_CONTAINS(message, "bf16");
}

TEST(BadInput, BatchTriangle) {
  const std::string message = refused_strategy(
      R"({"train_batch_size": 15, "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 4})");
  EXPECT_CONTAINS(message, "train_batch_size");
  EXPECT_CONTAINS(message, "16");  // 2 * 4 * 2 ranks
}

// gpt2-tiny has 2 layers.
std::string refused_pipeline(const std::string& ranks,
                             const std::vector<std::string>& options = {}) {
  const Home home;
  std::vector<std::string> call{"run",        "gpt2-tiny", "--backend",  "sim", "--ranks", "4",
                                "--strategy", "zero-1",    "--pipeline", ranks, "--steps", "1"};
  call.insert(call.end(), options.begin(), options.end());
  return refused(home, call, 3);
}

TEST(BadInput, PipelinesThatCannotBe) {
  EXPECT_CONTAINS(refused_pipeline("3"), "3 does not divide 4 ranks; use --ranks 3");
  EXPECT_CONTAINS(refused_pipeline("4"),
                  "parallel.pipeline: 4 ranks of 1 virtual stages make 4 stages, the model has 2 "
                  "layers; use at most 2 stages");
  EXPECT_CONTAINS(refused_pipeline("2", {"--layers-per-stage", "2,1"}),
                  "parallel.layers_per_stage: 2 stages of 3 layers together; give 2 numbers that "
                  "add up to 2");
  EXPECT_CONTAINS(refused_pipeline("4", {"--layers-per-stage", "2,0,0,0"}),
                  "parallel.layers_per_stage: rank 1 of the pipeline would have nothing");
  EXPECT_CONTAINS(
      refused_pipeline("2", {"--virtual-stages", "2"}),
      "interleaved works on groups of 2 micro-batches, which must be 2 (the ranks) to 1 "
      "(the micro-batches); use at least 2 micro-batches");
  EXPECT_CONTAINS(refused_pipeline("2", {"--schedule", "zb-v"}),
                  "zb-v needs 2 virtual stages, parallel.virtual_stages is 1; set it to 2");
  EXPECT_CONTAINS(refused_pipeline("2", {"--schedule", "1F1B"}), "\"1F1B\" is not one of gpipe");
}

TEST(BadInput, MalformedJsonHasLineAndColumn) {
  const Home home;
  const std::string file = home.file("broken.json", "{\n  \"model\": \"gpt2-tiny\",,\n}");
  EXPECT_CONTAINS(refused(home, {"run", file}, 3), "broken.json:2:");
}

TEST(BadInput, MissingEmptyAndTruncatedData) {
  const Home home;
  EXPECT_CONTAINS(refused_data(home, home.path("none.txt")), "none.txt");
  EXPECT_CONTAINS(refused_data(home, home.file("empty.txt", "")), "empty.txt");
  EXPECT_CONTAINS(refused_data(home, home.file("short.txt", "short")), "short.txt");
  EXPECT_CONTAINS(refused_data(home, home.file("odd.bin", std::string(4001, '\1'))), "odd.bin");
}

TEST(BadInput, TokenBeyondTheVocabulary) {
  const Home home;
  std::string tokens(4000, '\0');
  tokens[101] = 1;  // token 50 is 256, gpt2-tiny has 256 tokens
  const std::string message = refused_data(home, home.file("beyond.bin", tokens));
  EXPECT_CONTAINS(message, "beyond.bin");
  EXPECT_CONTAINS(message, "256");
  EXPECT_CONTAINS(message, "50");
}

TEST(BadInput, NoRanksAndTooMany) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"run", "tiny-gpt2", "--ranks", "0"}, 3), "run.ranks: 0");
  EXPECT_CONTAINS(refused(home, {"run", "tiny-gpt2", "--ranks", "65"}, 3), "run.ranks: 65");
  EXPECT_EQ(zerolab(home, {"run", "tiny-gpt2", "--ranks", "65", "--backend", "sim"}).code, 0);
}

// No launcher set them here; the program only reads what one would say.
TEST(BadInput, LaunchedProcessesThatWouldBeThreads) {
  const Home home;
  const auto launched = [&](const std::vector<std::string>& arguments) {
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
    std::string message = refused(home, arguments, 2);
    for (const char* name : {"RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"}) {
      unsetenv((std::string("OMPI_COMM_WORLD_") + name).c_str());
    }
    return message;
  };
  EXPECT_CONTAINS(launched({"run", "tiny-gpt2", "--backend", "cpu"}), "--communicator mpi");
}

TEST(BadInput, HeadsThatDoNotDivideHidden) {
  const Home home;
  const std::string file = home.file("heads.json", R"({"schema": 1, "model": {"family": "gpt2",
    "layers": 2, "hidden": 64, "heads": 5, "vocab": 256, "max_sequence": 64}})");
  const std::string message = refused(home, {"run", file}, 3);
  EXPECT_CONTAINS(message, "heads");
  EXPECT_CONTAINS(message, "64");
}

TEST(BadInput, ABudgetTooSmallIsAResult) {
  const Home home;
  for (const char* backend : {"cpu", "sim"}) {
    const Output output =
        zerolab(home, {"run", data_file("tiny.json"), "--backend", backend, "--device-memory",
                       "1MiB", "--strategy", "zero-0", "-o", "json"});
    EXPECT_EQ(output.code, 4) << output.err;
    const Json result = Json::parse(output.out)["results"][0];
    EXPECT_EQ(result["outcome"], "out_of_memory");
    const std::string message = result["message"];
    EXPECT_CONTAINS(message, "requested for 'first moment'");
    EXPECT_CONTAINS(message, "budget of 1.00 MiB");
    EXPECT_CONTAINS(message, "gradient 'gradients' 471.00 KiB");
  }
}

// What the ranks' device and host tiers hold together, 2 times 1.4 MiB.
TEST(BadInput, AMachineTooSmallForAllRanksIsAResultAndNoStoredRun) {
  const Home home;
  const std::string file = home.file("offload.json", R"({"schema": 1, "model": "gpt2-tiny",
    "strategies": ["zero-2-offload-cpu"],
    "run": {"ranks": 2, "steps": 2, "data": "synthetic", "sequence_length": 16}})");
  const auto run = [&](const char* memory) {
    setenv("ZEROLAB_MEMORY", memory, 1);
    Output output = zerolab(
        home, {"run", file, "--backend", "cpu", "--db", home.path("runs.db"), "-o", "json"});
    unsetenv("ZEROLAB_MEMORY");
    return output;
  };
  EXPECT_EQ(run("16MiB").code, 0);
  const Output output = run("2MiB");
  EXPECT_EQ(output.code, 4) << output.err;
  const Json result = Json::parse(output.out)["results"][0];
  EXPECT_EQ(result["outcome"], "out_of_memory");
  EXPECT_TRUE(result["run_id"].is_null());  // nothing ran: the database keeps the run before alone
  const std::string message = result["message"];
  EXPECT_CONTAINS(message, "of 1.00 MiB, this rank's share of the machine's memory");
  EXPECT_CONTAINS(message, "largest holders: ");
}

TEST(BadInput, ABareNumberWhereAUnitBelongs) {
  const Home home;
  const auto run = [&](const char* option, const char* value) {
    return refused(home, {"run", "llama3-8b", "--cluster", "8xh100", option, value}, 3);
  };
  EXPECT_CONTAINS(run("--device-memory", "80"), "run.device_memory: 80 has no unit; 80GiB?");
  EXPECT_CONTAINS(run("--link-bandwidth", "100"), "run.link_bandwidth: 100 has no unit; 100Gbit?");
}

TEST(BadInput, FilesOfAnotherKindAreToldByWhatIsInThem) {
  const Home home;
  const std::string weights =
      home.file("weights.txt", std::string("\x40\0\0\0\0\0\0\0{\"a\":{}}", 16));
  EXPECT_CONTAINS(refused_data(home, weights), "this is a safetensors file, not a text");
  const std::string config =
      home.file("config.json", R"({"model_type": "llama", "hidden_size": 64, "eos_token_id": 2})");
  EXPECT_CONTAINS(refused(home, {"run", "gpt2-tiny", "--strategy", config}, 3),
                  "this is a model, not a strategy; use --model");
  EXPECT_CONTAINS(refused(home, {"run", "gpt2-tiny", "--strategy", weights}, 3),
                  "this is a safetensors file, not a strategy");
  EXPECT_CONTAINS(refused(home, {"run", "gpt2-tiny", "--model", weights}, 3),
                  "this is a safetensors file, not a model");
}

TEST(BadInput, ABackendOfNoNameAndACountOfNone) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"run", "tiny-gpt2", "--backend", "gpu"}, 2),
                  "is not one of cpu, cuda, sim");
  EXPECT_CONTAINS(refused(home, {"train", "tiny-gpt2", "--log-every", "0"}, 2),
                  "not in range 1 to 1000000");
}

TEST(BadInput, ASoftwareIsForSimulatedGpus) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"run", "tiny-gpt2", "--software", "torch-fsdp2"}, 3),
                  "leave run.software (--software) out");
  EXPECT_CONTAINS(refused(home,
                          {"run", "gpt2-tiny", "--cluster", "4xh100", "--backend", "cpu",
                           "--software", "torch-fsdp2"},
                          3),
                  "use --backend sim");
}

TEST(BadInput, WhatWasAStackIsASoftware) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"run", "gpt2-tiny", "--stack", "pytorch-eager"}, 2),
                  "--stack is now --software NAME");
  const std::string file =
      home.file("old.json",
                R"({"schema": 1, "model": "gpt2-tiny", "cluster": "h100", "run": {"stack": "x"}})");
  EXPECT_CONTAINS(refused(home, {"run", file}, 3), "run.stack: is now run.software");
}

TEST(BadInput, RunsToValidateNameTheirColumnsAndUnits) {
  const Home home;
  const std::string head =
      "id,source,gpu,n_gpus,layers,hidden,heads,seq,micro_batch,measured_quantity,value,unit\n";
  const auto refuses = [&](const std::string& text, const char* part) {
    const std::string file = home.file("runs.csv", text);
    EXPECT_CONTAINS(refused(home, {"validate", "--file", file}, 3), part);
  };
  refuses("id,source\n", "column \"gpu\" is missing");
  refuses(head + "a,b,c\n", "runs.csv:2: 3 fields where the header has 12");
  refuses(head + "a,llm.c,a100-80,8,2,64,2,64,1,iteration_time,1,minutes\n",
          "unit: \"minutes\" is not one of ms, s");
  refuses(head + "a,llm.c,a100-80,8,2,64,2,64,1,iteration_time,fast,ms\n",
          "value: \"fast\" is no number above 0");
  refuses(head + "a,\"llm.c,a100-80\n", "a quote that does not end");
  const std::string row = "a,llm.c,a100-80,8,2,64,2,64,1,iteration_time,1,ms";
  std::string kinds = head;
  kinds.insert(kinds.size() - 1, ",kind");
  refuses(kinds + row + ",guessed\n", "kind: \"guessed\" is neither measured nor composed");
  // A run is not lost for a software that nobody knows: its name is in the message.
  const std::string file = home.file("runs.csv", head + row + "\n");
  EXPECT_CONTAINS(refused(home, {"validate", "--file", file, "--software", "llm.d"}, 3), "llm.c");
  EXPECT_CONTAINS(refused(home, {"calibrate", "--runs", file, "--software", "llm.d"}, 3), "llm.c");
  EXPECT_CONTAINS(
      refused(home,
              {"calibrate", "--runs", file, "--software", "deepspeed", "--numbers", "kernels.gemm"},
              3),
      "no run of \"deepspeed\"");
}

TEST(BadInput, TimesBeyondTheRangeOfPicoseconds) {
  const Home home;
  const std::string message = refused(home,
                                      {"run", "gpt2-124m", "--cluster", "16xh100", "--strategy",
                                       "zero-1", "--link-bandwidth", "100B"},
                                      3);
  EXPECT_CONTAINS(message, "more than 1000000 s");
  EXPECT_CONTAINS(message, "--link-bandwidth");
}

TEST(BadInput, AReportOfAnUnknownEnding) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"report", "--output", home.path("r.pdf")}, 2), "r.pdf");
}

TEST(BadInput, ABackendThatIsNotThere) {
  const Home home;
  EXPECT_CONTAINS(refused(home, {"run", "tiny-gpt2", "--backend", "cuda"}, 5), "cuda");
  EXPECT_CONTAINS(refused(home, {"calibrate", "--backend", "cuda"}, 5), "cuda");
}

// --- databases ---

std::vector<std::string> into(const std::string& database) {
  return {"run", "tiny-gpt2", "--backend", "sim", "--db", database};
}

void execute(const std::string& path, const char* sql) {
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(connection);
}

TEST(BadDatabase, InAFolderThatCannotBe) {
  const Home home;
  home.file("plain", "a file, not a folder");
  EXPECT_CONTAINS(refused(home, into(home.path("plain/results.db")), 1), "plain");
  const std::string typed = home.path("reslts/all.db");
  EXPECT_CONTAINS(refused(home, into(typed), 1), "--db: " + typed + ": there is no folder");
  EXPECT_FALSE(std::filesystem::exists(home.path("reslts"))) << "of a typing error";
}

// Quiet programs still say why they fail.
TEST(BadDatabase, ThatRefusesARow) {
  const Home home;
  const std::string path = home.path("full.db");
  std::vector<std::string> quietly = into(path);
  quietly.insert(quietly.begin(), "-q");
  EXPECT_EQ(zerolab(home, quietly).err, "");
  execute(path,
          "CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'no more'); END");
  const Output output = zerolab(home, quietly);
  EXPECT_EQ(output.code, 3);
  EXPECT_CONTAINS(output.err, "zerolab: error: not stored: " + path);
}

// What shows only when the run is stored.
TEST(BadDatabase, WithAnIndexThatIsGarbled) {
  const Home home;
  const std::string path = home.path("garbled.db");
  ASSERT_EQ(zerolab(home, into(path)).code, 0);
  execute(path,
          "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM "
          "sqlite_schema WHERE name = 'environments') WHERE name = 'runs_by_key'");
  const Output output = zerolab(home, into(path));
  EXPECT_EQ(output.code, 3) << output.err;
  EXPECT_CONTAINS(output.err, "not stored: " + path + ": the database is damaged; move it away");
}

TEST(BadDatabase, Foreign) {
  const Home home;
  const std::string path = home.path("foreign.db");
  execute(path, "PRAGMA application_id = 42; CREATE TABLE songs(title TEXT);");
  EXPECT_CONTAINS(refused(home, into(path), 3), "foreign.db");
  EXPECT_CONTAINS(
      refused(home, into(home.file("text.db", "no database at all, but long enough")), 3),
      "text.db");
}

TEST(BadDatabase, Newer) {
  const Home home;
  const std::string path = home.path("newer.db");
  ASSERT_EQ(zerolab(home, into(path)).code, 0);
  execute(path, "PRAGMA user_version = 999;");
  EXPECT_CONTAINS(refused(home, into(path), 3), "newer");
}

}  // namespace
}  // namespace zl::cli_test
