#include "gui/models/problems.h"

#include <algorithm>

#include "scenarios/files/load_scenario.h"

namespace zl::gui {
namespace {

// The key that a message begins with.
QString guilty_key(const QString& message, const std::vector<QString>& keys) {
  for (const QString& key : keys) {
    for (const char* end : {":", ".", " "}) {
      if (message.startsWith(key + end)) return key;
    }
    if (key == "strategies" && message.startsWith("strategy")) return key;
  }
  return {};
}

// Without what is wrong at the key. A model there must be; a length that suits the one that was
// meant may be too long for it.
Document without(const Document& document, const QString& key) {
  if (key != "model") return document.with(key.toStdString(), "");
  const std::string length = document.get("run.sequence_length");
  const bool number = length.find_first_not_of("0123456789") == std::string::npos;
  const Document other = document.with("model", "gpt2-tiny");
  return number ? other.with("run.sequence_length", "") : other;
}

}  // namespace

std::vector<Problem> problems_of(const Document& document, const QString& first,
                                 const std::vector<QString>& keys) {
  std::vector<Problem> problems;
  Document rest = document;
  QString message = first;
  while (!message.isEmpty()) {
    const QString key = guilty_key(message, keys);
    const bool again = std::any_of(problems.begin(), problems.end(),
                                   [&key](const Problem& each) { return each.key == key; });
    if (again) break;  // taking it away did not help
    problems.push_back({key, message});
    if (key.isEmpty()) break;
    rest = without(rest, key);
    message.clear();
    try {
      scenario_from_json(rest.text(), rest.source());
    } catch (const std::exception& error) {
      message = error.what();
    }
  }
  return problems;
}

}  // namespace zl::gui
