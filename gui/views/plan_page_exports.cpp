// What leaves the Plan page: a command, another software's configuration, a report.
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QMenu>
#include <QPushButton>
#include <QTableView>

#include "core/base/error.h"
#include "core/base/files.h"
#include "gui/models/plan_data.h"
#include "gui/models/table_model.h"
#include "gui/views/plan_page.h"
#include "gui/views/table_view.h"
#include "results/report_html.h"
#include "results/report_markdown.h"
#include "scenarios/report/plan_report.h"

namespace zl::gui {

QWidget* PlanPage::make_exports() {
  copy_ = new QPushButton(tr("&Copy as command"));
  copy_->setToolTip(tr("zerolab plan with the same question"));
  report_ = new QPushButton(tr("&Report…"));
  report_->setToolTip(tr("The selected plan, its runners-up and how to run it, as a page"));
  launch_ = new QPushButton(tr("Copy &for"));
  launch_->setToolTip(tr("The selected plan as the configuration of what runs it"));
  auto* menu = new QMenu(launch_);
  for (int i = 0; i < kLaunchSoftware; ++i) {
    const auto software = static_cast<LaunchSoftware>(i);
    menu->addAction(QString::fromUtf8(name_of(software)), this,
                    [this, software] { copy_launch(software); });
  }
  launch_->setMenu(menu);
  auto* row = new QWidget;
  auto* bar = new QHBoxLayout(row);
  bar->setContentsMargins(0, 0, 0, 0);
  bar->addStretch(1);
  for (QPushButton* each : {report_, launch_, copy_}) bar->addWidget(each);
  connect(report_, &QPushButton::clicked, this, &PlanPage::report_wanted);
  connect(copy_, &QPushButton::clicked, this, [this] {
    QApplication::clipboard()->setText(command_);
    show_state(tr("Copied: %1").arg(command_.section('\n', 0, 0)));
  });
  return row;
}

const Plan* PlanPage::selected() const {
  if (!plans_) return nullptr;
  const auto shown = shown_plans(*plans_);
  const int row = current_row(*view_);
  return row < 0 || row >= static_cast<int>(shown.size()) ? nullptr
                                                          : shown[static_cast<std::size_t>(row)];
}

void PlanPage::copy_launch(LaunchSoftware software) {
  const Plan* plan = selected();
  if (plan == nullptr) return;
  const QString name = QString::fromUtf8(name_of(software));
  try {
    const LaunchFile file =
        write_launch(software, plan->strategy.strategy, launch_facts(request_.scenario));
    QApplication::clipboard()->setText(QString::fromStdString(file.text));
    QString said = tr("Copied for %1.").arg(name);
    for (const std::string& note : file.notes) said += " " + QString::fromStdString(note);
    show_state(said);
  } catch (const Error& error) {
    show_state(error.what());
  }
}

void PlanPage::save_report(const QString& file) const {
  const Plan* plan = selected();
  const ReportPage page =
      plan_report(request_, *plans_, {}, plan != nullptr ? *plan : plans_->best.front());
  AtomicFile out(file.toStdString());
  out.write(file.endsWith(".md") ? page_markdown(page) : page_html(page));
  out.commit();
}

}  // namespace zl::gui
