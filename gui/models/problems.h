// Everything that is wrong with a document, not only what is met first.
// Ownership: values. Threads: pure functions that may read the files a document names.
#pragma once

#include <QString>
#include <vector>

#include "scenarios/planner/document.h"

namespace zl::gui {

struct Problem {
  QString key;  // of `keys`; empty: none of them
  QString message;
};

// `first`: what stopped the evaluation. Behind it, what else stops it once that key is taken away,
// and so on. `keys` are dotted paths of the scenario file; a message about a strategy belongs to
// "strategies".
std::vector<Problem> problems_of(const Document& document, const QString& first,
                                 const std::vector<QString>& keys);

}  // namespace zl::gui
