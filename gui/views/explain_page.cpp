#include "gui/views/explain_page.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <QLabel>
#include <QSplitter>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/models/table_model.h"
#include "gui/units.h"
#include "gui/views/chart_page.h"
#include "gui/views/folding_row.h"
#include "gui/views/table_view.h"
#include "scenarios/run/explain_tables.h"

namespace zl::gui {

ExplainPage::ExplainPage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), background_(new Background(this)) {
  summary_ = new QLabel;
  summary_->setWordWrap(true);
  summary_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addWidget(summary_);
  layout->addWidget(make_tables(), 1);
  for (const auto signal :
       {&Session::study_changed, &Session::selection_changed, &Session::filter_changed}) {
    connect(&session, signal, this, [this] {
      if (isVisible()) ask();
    });
  }
  connect(background_, &Background::failed, this, &ExplainPage::show_message);
}

QWidget* ExplainPage::make_tables() {
  parts_ = new TableModel(this);
  step_ = new TableModel(this);
  peak_ = new TableModel(this);
  software_ = new TableModel(this);
  levers_ = new TableModel(this);
  const auto table = [this](const QString& title, TableModel* model) {
    return titled(title, make_table_view(model, title, this));
  };
  software_box_ = table(tr("The same under the software"), software_);
  auto* small = new FoldingSplitter;
  small->addWidget(table(tr("Parts of a step"), parts_));
  small->addWidget(table(tr("What twice as much would do"), levers_));
  auto* held = new FoldingSplitter;
  held->addWidget(table(tr("Held at the peak"), peak_));
  held->addWidget(software_box_);
  auto* all = new QSplitter(Qt::Vertical);
  all->addWidget(small);
  all->addWidget(table(tr("Work of a step"), step_));
  all->addWidget(held);
  all->setSizes({220, 340, 240});
  return all;
}

void ExplainPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  ask();
}

void ExplainPage::ask() {
  const auto study = session_.study();
  const StrategyStudy* current = session_.current();
  const QString name = current ? QString::fromStdString(current->name()) : QString();
  if (study == asked_ && name == asked_of_) return;
  asked_ = study;
  asked_of_ = name;
  show_message(current ? tr("Working out where %1 spends its time…").arg(name) : QString());
  if (current == nullptr) return background_->cancel();
  background_->start([this, study, current](const Background::Link&) -> Background::Deliver {
    const auto why = std::make_shared<const Explanation>(
        explain(study->scenario, *current->recording, current->result, current->timeline()));
    return [this, why] { take(*why); };
  });
}

void ExplainPage::show_message(const QString& message) {
  summary_->setText(message);
  for (TableModel* each : {parts_, step_, peak_, software_, levers_}) each->set_table({});
}

void ExplainPage::take(const Explanation& why) {
  const RunResult& run = why.result;
  QString text =
      tr("A step of %1 takes %2, 9 times out of 10 between %3 and %4; a rank holds %5 at the peak.")
          .arg(asked_of_, seconds_text(run.step_time.median), seconds_text(run.step_time_low),
               seconds_text(run.step_time_high),
               bytes_text(static_cast<double>(run.peak_device.total())));
  const auto& software = why.software.bytes;
  if (software) {
    text +=
        tr(" These are bytes of this core, counted; %1 itself would hold %2, between %3 and %4.")
            .arg(QString::fromStdString(software->software),
                 bytes_text(static_cast<double>(software->held.total())),
                 bytes_text(static_cast<double>(software->least())),
                 bytes_text(static_cast<double>(software->most())));
  }
  summary_->setText(text);
  parts_->set_table(parts_table(run));
  step_->set_table(step_table(why));
  peak_->set_table(peak_table(why));
  levers_->set_table(lever_table(why));
  software_->set_table(software ? software_parts_table(*software) : Table{});
  software_box_->setVisible(software.has_value());
}

QString ExplainPage::summary() const { return summary_->text(); }

void ExplainPage::wait() {
  while (running()) {
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents |
                                    QEventLoop::ExcludeUserInputEvents);
  }
}

}  // namespace zl::gui
