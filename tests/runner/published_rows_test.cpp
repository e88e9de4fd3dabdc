// What rows of published runs say, as scenarios of this program.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "scenarios/published/published_run.h"

namespace zl {
namespace {

// A run of a pipeline of two, with other values in some columns.
Expressed expressed_with(const std::map<std::string, std::string>& other) {
  std::map<std::string, std::string> row{{"id", "a"},
                                         {"source", "Zero Bubble"},
                                         {"gpu", "A100"},
                                         {"n_gpus", "2"},
                                         {"layers", "6"},
                                         {"hidden", "64"},
                                         {"heads", "4"},
                                         {"seq", "64"},
                                         {"micro_batch", "1"},
                                         {"global_batch", "4"},
                                         {"tp", "1"},
                                         {"pp", "2"},
                                         {"vpp", ""},
                                         {"schedule", ""},
                                         {"layers_per_stage", ""},
                                         {"unit", "s"},
                                         {"value", "1"},
                                         {"measured_quantity", "iteration_time"}};
  for (const auto& [column, value] : other) row[column] = value;
  std::string head, values;
  for (const auto& [column, value] : row) {
    head += (head.empty() ? "" : ",") + column;
    values += (values.empty() ? "" : ",") + value;
  }
  return express(read_published(head + "\n" + values + "\n", "a.csv").front());
}

TEST(PublishedRows, PipelinesHaveTheScheduleAndTheLayersThatAreStated) {
  const Expressed run = expressed_with({{"schedule", "zb-h1"}, {"layers_per_stage", "2 4"}});
  ASSERT_TRUE(run.scenario) << run.why_not;
  const PipelineConfig& pipeline = run.scenario->strategies.front().strategy.pipeline;
  EXPECT_EQ(pipeline.schedule, PipelineKind::zb_h1);
  EXPECT_EQ(pipeline.layers_per_stage, (std::vector<std::int64_t>{2, 4}));
  EXPECT_TRUE(expressed_with({{"layers_per_stage", "0 6"}}).scenario) << "the embedding alone";
  EXPECT_EQ(expressed_with({{"layers_per_stage", "-1 7"}}).why_not,
            "a stage of fewer than no layers");
}

// Rows that differ in no word of what ran are measurements of one configuration.
TEST(PublishedRows, OneConfigurationIsItsMedian) {
  const std::string head =
      "id,source,link,date,gpu,n_gpus,layers,hidden,heads,seq,micro_batch,"
      "measured_quantity,value,unit,options\n";
  const auto row = [](const std::string& id, const std::string& value, const std::string& options) {
    return id + ",s,https://" + id + ",2026," + "A100,1,2,64,4,64,1,iteration_time," + value +
           ",s," + options + "\n";
  };
  const std::vector<PublishedRun> runs =
      read_published(head + row("a", "3", "x") + row("b", "9", "y") + row("c", "1", "x") +
                         row("d", "2", "x") + row("e", "5", "y"),
                     "runs.csv");
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].id, "a");
  EXPECT_EQ(runs[0].value, 2);
  EXPECT_EQ(runs[0].values, (std::vector<double>{3, 1, 2}));
  EXPECT_EQ(runs[1].value, 7) << "the mean of the two in the middle";
}

TEST(PublishedRows, AFileWithoutRowsSaysSo) {
  const auto message_of = [](const std::string& csv) -> std::string {
    try {
      read_published(csv, "runs.csv");
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  };
  EXPECT_EQ(message_of("id,source,gpu,measured_quantity,value,unit,layers,hidden,heads,seq,n_gpus,"
                       "micro_batch\n"),
            "runs.csv:1: no rows below the header");
  EXPECT_EQ(message_of("").find("runs.csv:1: column \"id\" is missing. Needed: id, source"), 0U);
}

TEST(PublishedRows, OptionsAreWholeWords) {
  const auto has = [](const std::string& options, const char* option) {
    return has_option({1, {{"options", options}, {"notes", "swiglu"}}}, option);
  };
  EXPECT_TRUE(has("a;transformer-impl local", "transformer-impl local"));
  EXPECT_TRUE(has("microbatch-group-size 5", "microbatch-group-size"));
  EXPECT_FALSE(has("overlap-param-gather-with-optimizer-step", "overlap-param-gather"));
  EXPECT_FALSE(has("a", "swiglu")) << "notes are prose where there is a column of options";
  EXPECT_TRUE(has_option({1, {{"notes", "flags: swiglu;rope"}}}, "swiglu"));
}

TEST(PublishedRows, ModelsHaveWhatIsStated) {
  const auto model = [](const std::map<std::string, std::string>& other) {
    const Expressed run = expressed_with(other);
    EXPECT_TRUE(run.scenario) << run.why_not;
    return run.scenario->model;
  };
  EXPECT_EQ(model({}).dropout, 0);
  EXPECT_EQ(model({{"dropout", "0.1"}}).dropout, 0.1);
  EXPECT_EQ(model({{"position", "rope"}}).position, PositionKind::rope);
  EXPECT_FALSE(model({{"options", "disable-bias-linear"}}).mlp_bias);
  EXPECT_TRUE(model({}).mlp_bias);
  EXPECT_FALSE(expressed_with({{"dropout", "much"}}).scenario);
  const Expressed copies =
      expressed_with({{"pp", "1"}, {"zero_stage", "1"}, {"replicas", "2"}, {"n_gpus", "4"}});
  ASSERT_TRUE(copies.scenario) << copies.why_not;
  EXPECT_EQ(copies.scenario->strategies.front().strategy.zero.replicas, 2);
}

TEST(PublishedRows, NumbersThatCannotBeAreReasons) {
  for (const char* column :
       {"layers", "pp", "tp", "micro_batch", "global_batch", "n_gpus", "vpp"}) {
    for (const char* value : {"-1", "9223372036854775807", "4000000000", "two"}) {
      const Expressed run = expressed_with({{column, value}});
      EXPECT_FALSE(run.scenario) << column << " " << value;
      EXPECT_NE(run.why_not, "") << column << " " << value;
    }
  }
  EXPECT_FALSE(expressed_with({{"vpp", "layers/vstage=9223372036854775807"}}).scenario);
  EXPECT_TRUE(expressed_with({{"tp", "0"}}).scenario) << "0 is not stated, as nothing is";
}

}  // namespace
}  // namespace zl
