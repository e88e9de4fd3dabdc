// `zerolab runs`: the database from the command line.
#include <filesystem>

#include "results/store.h"
#include "tests/cli/program.h"

namespace zl::cli_test {
namespace {

namespace fs = std::filesystem;

class RunsCommand : public ::testing::Test {
 protected:
  RunsCommand() {
    EXPECT_EQ(run({"run", "tiny-gpt2", "--backend", "sim", "--strategy", "zero-1,zero-3", "--tag",
                   "base,line"})
                  .code,
              0);
  }
  Output run(std::vector<std::string> arguments) const { return zerolab(home_, arguments); }
  Json json(std::vector<std::string> arguments) const {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Output output = run(arguments);
    EXPECT_EQ(output.code, 0) << output.err;
    return Json::parse(output.out);
  }
  Home home_;
};

TEST_F(RunsCommand, ListsAndFilters) {
  const Json all = json({"runs"});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["run"], 2);
  EXPECT_EQ(all[0]["strategy"], "zero-3");
  EXPECT_EQ(all[0]["tags"], "base line");
  EXPECT_EQ(all[0]["model"], "gpt2-tiny");
  EXPECT_EQ(all[0]["cluster"], "local");
  EXPECT_EQ(all[0]["tokens_per_step"], all[0]["ranks"].get<int>() *
                                           all[0]["sequence_length"].get<int>() *
                                           all[0]["micro_batch"].get<int>());
  EXPECT_EQ(json({"runs", "--strategy", "zero-1"}).size(), 1u);
  EXPECT_EQ(json({"runs", "list", "--tag", "line"}).size(), 2u);
  EXPECT_EQ(json({"runs", "--tag", "li"}).size(), 0u);
  EXPECT_EQ(json({"runs", "--backend", "cpu"}).size(), 0u);
  EXPECT_EQ(json({"runs", "--scenario", "tiny-gpt2", "--limit", "1"}).size(), 1u);
  EXPECT_EQ(json({"runs", "--until", "2020-12-31"}).size(), 0u);
  EXPECT_EQ(json({"runs", "--since", "2020-12-31"}).size(), 2u);
  EXPECT_CONTAINS(refused(home_, {"runs", "--since", "yesterday"}, 2), "--since: \"yesterday\"");
  EXPECT_CONTAINS(refused(home_, {"runs", "lits"}, 2), "the nearest is \"list\"");
}

TEST_F(RunsCommand, ShowsWhatARunWas) {
  const Output text = run({"runs", "show", "2"});
  EXPECT_CONTAINS(text.out, "zero-3");
  EXPECT_CONTAINS(text.out, "global batch (tokens)");
  const Json one = json({"runs", "show", "2"});
  EXPECT_EQ(one["run"]["id"], 2);
  EXPECT_EQ(one["results"][0]["strategy"], "zero-3");
  EXPECT_EQ(one["configuration"]["model"]["name"], "gpt2-tiny");
  EXPECT_EQ(json({"runs", "show", "2,1"}).size(), 2u);
  EXPECT_CONTAINS(refused(home_, {"runs", "show", "9"}, 3), "has no run 9; `zerolab runs` lists");
  EXPECT_CONTAINS(refused(home_, {"runs", "show", "nine"}, 2), "is no id of a run");
}

TEST_F(RunsCommand, TagsNotesAndDeletes) {
  EXPECT_EQ(run({"runs", "tag", "1,2", "good"}).code, 0);
  EXPECT_EQ(run({"runs", "untag", "2", "base,line"}).code, 0);
  EXPECT_EQ(run({"runs", "note", "1", "the", "one"}).code, 0);
  Json all = json({"runs"});
  EXPECT_EQ(all[0]["tags"], "good");
  EXPECT_EQ(all[1]["tags"], "base line good");
  EXPECT_EQ(all[1]["note"], "the one");
  EXPECT_EQ(run({"runs", "note", "1", "--clear"}).code, 0);
  EXPECT_EQ(json({"runs"})[1]["note"], nullptr);
  refused(home_, {"runs", "note", "1"}, 2);
  refused(home_, {"runs", "tag", "1", "../up"}, 3);
  EXPECT_CONTAINS(refused(home_, {"runs", "delete", "1", "77"}, 3), "has no run 77");
  EXPECT_EQ(json({"runs"}).size(), 2u);
  EXPECT_EQ(run({"runs", "delete", "1"}).code, 0);
  EXPECT_EQ(json({"runs"}).size(), 1u);
  EXPECT_CONTAINS(refused(home_, {"run", "tiny-gpt2", "--tag", "-x", "--backend", "sim"}, 3),
                  "tag");
}

TEST_F(RunsCommand, DatabasesMerge) {
  const std::string exported = home_.path("exported.db"), other = home_.path("other.db");
  EXPECT_EQ(run({"runs", "export", exported, "--strategy", "zero-3"}).code, 0);
  EXPECT_CONTAINS(refused(home_, {"runs", "export", exported}, 1), "is there already");
  EXPECT_CONTAINS(run({"runs", "import", exported, "--db", other}).err,
                  "1 runs added, 0 were here");
  EXPECT_CONTAINS(run({"runs", "import", exported, "--db", other}).err,
                  "0 runs added, 1 were here");
  EXPECT_CONTAINS(run({"runs", "import", exported}).err, "0 runs added, 1 were here");
  const Json there = json({"runs", "--db", other});
  ASSERT_EQ(there.size(), 1u);
  EXPECT_EQ(there[0]["strategy"], "zero-3");
  EXPECT_EQ(there[0]["tags"], "base line");
  EXPECT_EQ(there[0]["saved_at"], json({"runs"})[0]["saved_at"]);
  EXPECT_CONTAINS(refused(home_, {"runs", "import", home_.path("none.db")}, 1), "no such file");
  const std::string text = home_.file("text.db", "no database");
  EXPECT_CONTAINS(refused(home_, {"runs", "import", exported, text}, 3), "not a zerolab database");
}

TEST_F(RunsCommand, WhatIsNotThereIsNotMade) {
  const std::string none = home_.path("none.db");
  EXPECT_CONTAINS(refused(home_, {"runs", "--db", none}, 1), "no database yet");
  EXPECT_CONTAINS(refused(home_, {"runs", "tag", "1", "a", "--db", none}, 1), "no database yet");
  EXPECT_FALSE(fs::exists(none));
}

TEST_F(RunsCommand, ARunThatMeasuredNothingIsNoRow) {
  const Output output = run({"run", data_file("tiny.json"), "--backend", "cpu", "--strategy",
                             "zero-1,zero-3", "--device-memory", "1MiB"});
  EXPECT_EQ(output.code, 4) << output.err;
  EXPECT_CONTAINS(output.err, "2 of 2 failed: 2 out_of_memory");
  EXPECT_EQ(json({"runs"}).size(), 2u);
}

}  // namespace
}  // namespace zl::cli_test
