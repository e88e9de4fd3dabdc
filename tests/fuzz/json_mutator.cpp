// Changes JSON as JSON: values for values, keys that some file of the project has, what is there
// copied elsewhere. Of the fuzz programs whose input is JSON.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using Json = nlohmann::ordered_json;
using Random = std::mt19937;

void add_keys(const Json& value, std::set<std::string>& keys) {
  if (value.is_object()) {
    for (const auto& item : value.items()) keys.insert(item.key());
  }
  if (!value.is_structured()) return;
  for (const Json& child : value) add_keys(child, keys);
}

std::vector<std::string> read_keys() {
  std::set<std::string> keys;
  std::ifstream paths(ZL_SOURCE_DIR "/tests/scenarios/key_paths.txt");
  for (std::string path; std::getline(paths, path);) keys.insert(path.substr(path.rfind('.') + 1));
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(ZL_SOURCE_DIR "/scenarios/catalog")) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream in(entry.path());
    add_keys(Json::parse(in, nullptr, false, true), keys);
  }
  return {keys.begin(), keys.end()};
}

template <class List>
const auto& any_of(const List& list, Random& random) {
  return list[random() % std::size(list)];
}

const std::string& any_key(Random& random) {
  static const std::vector<std::string> keys = read_keys();
  return any_of(keys, random);
}

Json any_value(Random& random) {
  static const std::vector<Json> values = {0,
                                           1,
                                           -1,
                                           0.5,
                                           1e308,
                                           -1e308,
                                           5e-324,
                                           9.2e18,
                                           1e18,
                                           INT64_MAX,
                                           INT64_MIN,
                                           UINT64_MAX,
                                           "",
                                           "auto",
                                           "../x",
                                           "a b",
                                           "\x1b",
                                           nullptr,
                                           true,
                                           false,
                                           Json::object(),
                                           Json::array()};
  switch (random() % 5) {
    case 0:
      return std::int64_t{1} << random() % 63;
    case 1:
      return static_cast<std::int64_t>(random() % 100);
    case 2:
      return any_key(random);
    default:
      return any_of(values, random);
  }
}

void collect(Json& value, std::vector<Json*>& all) {
  all.push_back(&value);
  if (!value.is_structured()) return;
  for (Json& child : value) collect(child, all);
}

void erase_one(Json& value, Random& random) {
  if (!value.is_structured() || value.empty()) return;
  value.erase(std::next(value.begin(), static_cast<std::ptrdiff_t>(random() % value.size())));
}

void change(Json& document, Random& random) {
  std::vector<Json*> all;
  collect(document, all);
  Json& target = *all[random() % all.size()];
  const Json other = random() % 2 == 0 ? any_value(random) : *all[random() % all.size()];
  if (random() % 4 == 0) {
    erase_one(target, random);
  } else if (target.is_object() && random() % 2 == 0) {
    target[any_key(random)] = other;
  } else if (target.is_array() && random() % 2 == 0) {
    target.push_back(other);
  } else {
    target = other;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  Random random(seed);
  Json document = Json::parse(data, data + size, nullptr, false, true);
  if (document.is_discarded() || random() % 5 == 0) return LLVMFuzzerMutate(data, size, most);
  for (std::size_t times = 1 + random() % 3; times > 0; --times) change(document, random);
  const std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  const std::size_t written = std::min(text.size(), most);
  std::memcpy(data, text.data(), written);
  return written;
}
