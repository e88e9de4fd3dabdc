// A saved model has the tensors that it was loaded from, bit for bit, from any strategy, and is
// there whole or not at all.
#include <algorithm>
#include <fstream>
#include <set>

#include "scenarios/files/attention_layout.h"
#include "scenarios/weights/label_names.h"
#include "scenarios/weights/save_model.h"
#include "tests/temp_folder.h"
#include "tests/weights/zoo.h"

namespace zl::test {
namespace {

namespace fs = std::filesystem;

void save(const std::string& name, const std::string& to, const Strategy& s, int ranks,
          SaveModelOptions options) {
  const ModelConfig model = zoo_model(name);
  const ModelWeights weights(zoo(name), model);
  std::unique_ptr<SavedModel> saved;
  const Mesh mesh = mesh_of(s, ranks);
  cpu::make_world({ranks, 1})->run([&](RankHandle handle) {
    RankContext context(handle.device, handle.communicator, {.mesh = mesh});
    Engine engine(context, model, s, 16, InitialWeights(1, &weights));
    if (context.rank() == 0) saved = std::make_unique<SavedModel>(to, model, options);
    engine.gather_model([&](const ParameterSpec& spec, const std::vector<float>& values) {
      saved->take(spec, values);
    });
  });
  saved->commit();
}

// By tensor: type and bytes.
std::map<std::string, std::pair<std::string, std::vector<std::byte>>> tensors_in(
    const std::string& folder) {
  std::map<std::string, std::pair<std::string, std::vector<std::byte>>> all;
  const WeightFolder weights(folder);
  for (const auto& [name, place] : weights.tensors()) {
    const SafetensorsEntry& entry = *place.entry;
    all[name] = {entry.code, place.file->bytes(place.file->header().data + entry.begin,
                                               entry.end - entry.begin)};
  }
  return all;
}

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_file(entry.path().string());
  }
  return files;
}

class SavedZoo : public testing::TestWithParam<std::string> {};

TEST_P(SavedZoo, HasTheBitsThatWereLoaded) {
  const TempFolder folder;
  const std::string to = (folder / "model").string();
  save(GetParam(), to, zoo_strategy(1), 1, {.source = zoo(GetParam())});
  EXPECT_EQ(tensors_in(to), tensors_in(zoo(GetParam())));
  const ModelConfig before = zoo_model(GetParam());
  ModelConfig after = load_model(to);
  after.dropout = after.attention_dropout = after.label_dropout = 0;
  after.name = before.name;
  EXPECT_EQ(model_to_json(after), model_to_json(before));
}

INSTANTIATE_TEST_SUITE_P(, SavedZoo, testing::ValuesIn([] {
                           std::vector<std::string> all = zoo_decoders();
                           all.emplace_back("llama_gqa_bf16");
                           for (const std::string& each : zoo_encoders()) all.push_back(each);
                           return all;
                         }()),
                         zoo_name);

TEST(SavedModel, FilesAreTheSameFromEveryStrategy) {
  const TempFolder folder;
  const std::string one = (folder / "one").string();
  save("gpt2", one, zoo_strategy(1), 1, {.source = zoo("gpt2"), .shard_bytes = 8000});
  Strategy sharded = zoo_strategy(1);
  sharded.zero.stage = 3;
  const std::string four = (folder / "four").string();
  save("gpt2", four, sharded, 4, {.source = zoo("gpt2"), .shard_bytes = 8000});
  Strategy tensor = zoo_strategy(1);
  tensor.tensor.ranks = 2;
  const std::string two = (folder / "two").string();
  save("gpt2", two, tensor, 2, {.source = zoo("gpt2"), .shard_bytes = 8000});
  EXPECT_EQ(files_in(four), files_in(one));
  EXPECT_EQ(files_in(two), files_in(one));
}

// Without a source the configuration is written from the model.
TEST(SavedModel, OfNoSourceIsReadAsTheSameModel) {
  for (const std::string name :
       {"gpt2", "gpt2_gelu_inner_untied", "llama_gqa", "llama3_rope", "llama_tied_bias", "qwen2",
        "qwen3", "gemma", "mistral_window4", "phi3", "phi3_longrope", "bert_seqcls", "bert_mlm",
        "roberta_mlm"}) {
    const TempFolder folder;
    const std::string to = (folder / name).string();
    save(name, to, zoo_strategy(1), 1, {});
    const ModelConfig before = zoo_model(name);
    ModelConfig after = load_model(to);
    after.dropout = after.attention_dropout = after.label_dropout = 0;
    EXPECT_EQ(model_to_json(after), model_to_json(before)) << name;
    EXPECT_EQ(tensors_in(to), tensors_in(zoo(name))) << name;
    EXPECT_EQ(read_model_type(to), read_model_type(zoo(name)));
  }
}

nlohmann::json config_in(const std::string& folder) {
  return nlohmann::json::parse(read_file(folder + "/config.json"));
}

// A folder like the zoo's, with other names of labels.
std::string renamed(const TempFolder& folder, const nlohmann::json& names) {
  std::string to = (folder / "source").string();
  fs::copy(zoo("bert_seqcls"), to);
  nlohmann::json config = config_in(to);
  config["id2label"] = names;
  config["label2id"] = nlohmann::json::object();
  for (const auto& [number, name] : names.items()) {
    if (name.is_string()) config["label2id"][name.get<std::string>()] = std::stoi(number);
  }
  std::ofstream(to + "/config.json") << config;
  return to;
}

TEST(SavedModel, HasTheNamesOfTheLabels) {
  for (const std::string& source : {std::string(), zoo("bert_seqcls")}) {
    const TempFolder folder;
    const std::string to = (folder / "model").string();
    save("bert_seqcls", to, zoo_strategy(1), 1, {.source = source, .labels = {"new", "old"}});
    const nlohmann::json config = config_in(to);
    EXPECT_EQ(config["id2label"],
              nlohmann::json::parse(R"({"0": "new", "1": "old", "2": "LABEL_2"})"));
    EXPECT_EQ(config["label2id"], nlohmann::json::parse(R"({"new": 0, "old": 1, "LABEL_2": 2})"));
    EXPECT_EQ(load_model(to).labels, 3);
    EXPECT_EQ(label_names(to, 3), (std::vector<std::string>{"new", "old", "LABEL_2"}));
    EXPECT_TRUE(label_names(to, 2).empty());
  }
}

TEST(SavedModel, KeepsTheNamesOfItsSource) {
  const TempFolder folder;
  const auto names = nlohmann::json::parse(R"({"0": "bad", "1": "fair", "2": "good"})");
  const std::string source = renamed(folder, names), to = (folder / "model").string();
  EXPECT_EQ(label_names(source, 3), (std::vector<std::string>{"bad", "fair", "good"}));
  save("bert_seqcls", to, zoo_strategy(1), 1, {.source = source});
  EXPECT_EQ(config_in(to)["id2label"], names);
  EXPECT_EQ(config_in(to)["label2id"], config_in(source)["label2id"]);
}

TEST(SavedModel, SaysWhichBlocksItsAttentionHad) {
  const SparseAttentionConfig bigbird{.mode = SparseMode::bigbird,
                                      .block = 32,
                                      .bidirectional = false,
                                      .num_random_blocks = 1,
                                      .seed = 7};
  const SparseAttentionConfig rows{
      .mode = SparseMode::layout, .bidirectional = false, .rows = {"#.", "##"}};
  const TempFolder folder;
  std::string source;
  for (const SparseAttentionConfig& sparse : {bigbird, rows, SparseAttentionConfig{}}) {
    const std::string to = (folder / name_of(sparse.mode)).string();
    save("gpt2", to, zoo_strategy(1), 1, {.source = source, .sparse = sparse});
    EXPECT_EQ(attention_layout(to, zoo_model("gpt2")), sparse);
    EXPECT_EQ(load_model(to).layers, zoo_model("gpt2").layers);
    source = to;  // whose blocks are not those of what is trained from it
  }
  EXPECT_FALSE(config_in(source).contains("zerolab"));
  EXPECT_EQ(attention_layout("", zoo_model("gpt2")), SparseAttentionConfig{});
}

TEST(AttentionLayout, ADamagedOneIsNamed) {
  const TempFolder folder;
  nlohmann::json config = config_in(zoo("gpt2"));
  config["zerolab"] = {{"sparse_attention", {{"mode", "local_sliding"}, {"block", 24}}}};
  std::ofstream((folder / "config.json").string()) << config;
  try {
    attention_layout(folder.string(), zoo_model("gpt2"));
    ADD_FAILURE() << "a block of 24";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("sparse_attention.block: 24"), std::string::npos) << what;
    EXPECT_NE(what.find("config.json: zerolab"), std::string::npos) << what;
  }
}

TEST(LabelNames, AreRefusedByName) {
  const auto says = [](const char* names, const std::string& what) {
    const TempFolder folder;
    try {
      label_names(renamed(folder, nlohmann::json::parse(names)), 3);
      ADD_FAILURE() << names;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("config.json: id2label" + what), std::string::npos)
          << error.what();
    }
  };
  says(R"({"0": "a", "1": "b", "3": "c"})", ": has no \"2\"");
  says(R"({"0": "a", "1": "b", "2": "a"})", ": \"a\" names both 0 and 2");
  says(R"({"0": "a", "1": 7, "2": "c"})", ".1: ");
  EXPECT_TRUE(label_names(zoo("bert_seqcls"), 3).empty());  // LABEL_0 and so on name nothing
  EXPECT_TRUE(label_names(zoo("bert_mlm"), 2).empty());
}

TEST(SavedModel, ShardsFollowTheLimit) {
  const TempFolder folder;
  const std::string to = (folder / "model").string();
  constexpr std::int64_t kLimit = 5000;
  save("llama_gqa", to, zoo_strategy(1), 1, {.shard_bytes = kLimit});
  const WeightFolder weights(to);  // all files of the index are there
  std::map<std::string, std::vector<std::int64_t>> shards;
  for (const auto& [name, place] : weights.tensors()) {
    shards[place.file->path()].push_back(place.entry->end - place.entry->begin);
  }
  EXPECT_GT(shards.size(), 2u);
  for (const auto& [path, sizes] : shards) {
    std::int64_t total = 0;
    for (const std::int64_t size : sizes) total += size;
    EXPECT_TRUE(total <= kLimit || sizes.size() == 1) << path;
    EXPECT_NE(path.find("-of-0000" + std::to_string(shards.size())), std::string::npos) << path;
  }
  const auto index = nlohmann::json::parse(read_file(to + "/model.safetensors.index.json"));
  std::int64_t bytes = 0;
  for (const auto& [path, sizes] : shards) {
    for (const std::int64_t size : sizes) bytes += size;
  }
  EXPECT_EQ(index["metadata"]["total_size"], bytes);
}

TEST(SavedModel, TakesTheTypeThatIsAsked) {
  const TempFolder folder;
  const std::string to = (folder / "model").string();
  save("llama_gqa", to, zoo_strategy(1), 1, {.source = zoo("llama_gqa"), .dtype = DType::bf16});
  EXPECT_EQ(tensors_in(to), tensors_in(zoo("llama_gqa_bf16")));
  EXPECT_EQ(nlohmann::json::parse(read_file(to + "/config.json"))["dtype"], "bfloat16");
}

TEST(SavedModel, TakesThePlaceOfAnEarlierOneAndKeepsWhatElseIsThere) {
  const TempFolder folder;
  const std::string to = (folder / "model").string();
  save("llama_gqa", to, zoo_strategy(1), 1, {.shard_bytes = 5000});
  std::ofstream(to + "/notes.txt") << "mine";
  save("qwen2", to, zoo_strategy(1), 1, {.source = zoo("qwen2")});
  EXPECT_EQ(tensors_in(to), tensors_in(zoo("qwen2")));
  EXPECT_EQ(read_file(to + "/notes.txt"), "mine");
  std::set<std::string> names;
  for (const auto& [name, text] : files_in(to)) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"config.json", "generation_config.json",
                                          "model.safetensors", "notes.txt"}));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 1);  // nothing beside it
}

// At every operation that changes the disk: the folder is the old model or the new one.
TEST(SavedModel, AFailureAtAnyOperationLeavesTheOldModelOrTheNew) {
  static int left;
  const auto old_model = tensors_in(zoo("llama_gqa")), new_model = tensors_in(zoo("qwen2"));
  bool finished = false;
  int failures = 0;
  for (int at = 0; !finished; ++at) {
    ASSERT_LT(at, 500);
    const TempFolder folder;
    const std::string to = (folder / "model").string();
    save("llama_gqa", to, zoo_strategy(1), 1, {.source = zoo("llama_gqa")});
    left = at;
    set_file_fault([] { return left-- == 0 ? ENOSPC : 0; });
    try {
      save("qwen2", to, zoo_strategy(1), 1, {.source = zoo("qwen2")});
      finished = left >= 0;
    } catch (const Error&) {
      ++failures;
    }
    set_file_fault(nullptr);
    const auto found = tensors_in(to);
    EXPECT_TRUE(found == old_model || found == new_model) << "operation " << at;
  }
  EXPECT_GT(failures, 10);
}

TEST(SavedModel, AFileIsNoFolder) {
  const TempFolder folder;
  const std::string file = (folder / "file").string();
  std::ofstream(file) << "text";
  EXPECT_THROW(check_model_folder(file), Error);
}

}  // namespace
}  // namespace zl::test
