#include "gui/plan_finder.h"

#include <algorithm>
#include <utility>

namespace zl::gui {

PlanFinder::PlanFinder(QObject* parent) : QObject(parent) {
  connect(&background_, &Background::failed, this, &PlanFinder::failed);
}

void PlanFinder::start(PlanRequest request) {
  background_.start([this, request = std::move(request)](const Background::Link& link) {
    return search(request, link);
  });
}

Background::Deliver PlanFinder::search(const PlanRequest& request, const Background::Link& link) {
  PlanHooks hooks;
  hooks.cancelled = &link.cancelled;
  int shown = -1;
  hooks.progress = [&](std::int64_t done, std::int64_t of, const char* what) {
    const int percent = of > 0 ? static_cast<int>(100 * std::min(done, of) / of) : 0;
    if (std::exchange(shown, percent) == percent) return;
    link.deliver([this, percent, name = QString(what)] { Q_EMIT progressed(name, percent); });
  };
  const auto delivery = [this](const Plans& plans, bool is_all) {
    return [this, is_all, plans = std::make_shared<const Plans>(plans)] {
      Q_EMIT found(plans, is_all);
    };
  };
  hooks.found = [&](const Plans& so_far) { link.deliver(delivery(so_far, false)); };
  return delivery(find_plans(request, hooks), true);
}

}  // namespace zl::gui
