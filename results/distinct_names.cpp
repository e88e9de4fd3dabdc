#include "results/distinct_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace zl {
namespace {

const NamedFact* fact_named(const NameWithFacts& each, const std::string& what) {
  const auto found = std::find_if(each.facts.begin(), each.facts.end(),
                                  [&](const NamedFact& fact) { return fact.what == what; });
  return found == each.facts.end() ? nullptr : &*found;
}

// What the names are longer by: the facts, in their order, that tell more of them apart.
std::vector<std::string> additions(const std::vector<const NameWithFacts*>& same) {
  std::vector<std::string> kinds, more(same.size());
  for (const NameWithFacts* each : same) {
    for (const NamedFact& fact : each->facts) {
      if (std::find(kinds.begin(), kinds.end(), fact.what) == kinds.end()) {
        kinds.push_back(fact.what);
      }
    }
  }
  const auto apart = [](const std::vector<std::string>& names) {
    return std::set<std::string>(names.begin(), names.end()).size();
  };
  for (const std::string& what : kinds) {
    std::vector<std::string> longer = more;
    for (std::size_t i = 0; i < same.size(); ++i) {
      const NamedFact* fact = fact_named(*same[i], what);
      if (fact == nullptr || fact->brief.empty()) continue;
      longer[i] += (longer[i].empty() ? "" : ", ") + fact->brief;
    }
    if (apart(longer) > apart(more)) more = std::move(longer);
  }
  return more;
}

}  // namespace

std::vector<std::string> distinct_names(const std::vector<NameWithFacts>& all) {
  using Key = std::pair<std::string, std::string>;  // group and name
  std::map<Key, std::vector<const NameWithFacts*>> by_name;
  for (const NameWithFacts& each : all) by_name[{each.group, each.name}].push_back(&each);
  std::map<const NameWithFacts*, std::string> longer;
  for (const auto& [key, same] : by_name) {
    const std::vector<std::string> more = additions(same);
    for (std::size_t i = 0; i < same.size(); ++i) {
      longer[same[i]] = same[i]->name + (more[i].empty() ? "" : " (" + more[i] + ")");
    }
  }
  std::vector<std::string> names;
  for (const NameWithFacts& each : all) names.push_back(longer[&each]);
  std::map<Key, int> uses;
  for (std::size_t i = 0; i < all.size(); ++i) ++uses[{all[i].group, names[i]}];
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (uses[{all[i].group, names[i]}] > 1 && !all[i].last_resort.empty())
      names[i] += ", " + all[i].last_resort;
  }
  return names;
}

}  // namespace zl
