#include "scenarios/launch/obstacles.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nearest.h"

namespace zl {

void Obstacles::add(const std::string& feature, const std::string& why,
                    const std::string& constraint) {
  texts_.push_back(feature + ": " + why);
  const bool is_new = std::ranges::find(constraints_, constraint) == constraints_.end();
  if (!constraint.empty() && is_new) constraints_.push_back(constraint);
}

void Obstacles::throw_if_any() const {
  if (texts_.empty()) return;
  std::string text = "-o " + software_ + " cannot say this plan: " + join(texts_, "; ");
  if (!constraints_.empty()) text += ". Plan with --constrain " + join(constraints_, ",");
  throw Error(ErrorCode::invalid, text);
}

}  // namespace zl
