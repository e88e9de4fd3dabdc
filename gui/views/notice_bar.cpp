#include "gui/views/notice_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>
#include <algorithm>
#include <filesystem>

#include "gui/theme.h"
#include "gui/units.h"
#include "gui/views/scenario_dock.h"
#include "scenarios/files/clusters.h"

namespace zl::gui {
namespace {

bool is_this_machine(const Scenario& scenario) {
  return scenario.cluster_json.empty() && scenario.cluster.starts_with("local");
}

// What its prices are worth; empty: measured for these ranks.
QString doubt(const Study& study) {
  if (!is_this_machine(study.scenario)) return {};
  std::error_code status;
  if (!std::filesystem::exists(local_cluster_path(study.scenario.cluster), status)) {
    return QObject::tr("This machine is not calibrated: simulated times are guesses.");
  }
  if (!study.cluster.calibration) return {};
  const auto ranks = study.scenario.run.ranks;
  QStringList known;
  for (const sim::RankCoefficients& each : study.cluster.calibration->by_ranks) {
    if (each.ranks == ranks) return {};
    known << QString::number(each.ranks);
  }
  return QObject::tr("This machine is calibrated for %1 ranks, not for %2: times are extrapolated.")
      .arg(known.join(", "))
      .arg(ranks);
}

}  // namespace

NoticeBar::NoticeBar(Session& session, const ScenarioDock& form, QWidget* parent)
    : QWidget(parent), session_(session), form_(form), calibrator_(new Calibrator(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(1);
  problems_ = make_line(tr("Undo"));
  calibration_ = make_line(tr("Calibrate"));
  problems_.button->setToolTip(tr("Takes back the last edit (Ctrl+Z)"));
  calibration_.button->setToolTip(
      tr("Trains small models on this machine for some ten minutes and fits its prices"));
  layout->addWidget(problems_.frame);
  layout->addWidget(calibration_.frame);
  connect(problems_.button, &QPushButton::clicked, this, [this] { session_.undo().undo(); });
  connect(calibration_.button, &QPushButton::clicked, this, &NoticeBar::calibrate);
  connect(&form, &ScenarioDock::problems_changed, this, &NoticeBar::show_problems);
  connect(&session, &Session::study_changed, this, &NoticeBar::show_calibration);
  connect(
      calibrator_, &Calibrator::progressed, this, [this](const QString& what, int done, int total) {
        progress_ =
            tr("Calibrating, %1 of %2: %3").arg(std::min(done + 1, total)).arg(total).arg(what) +
            left_text(done, total);
        show_calibration();
      });
  connect(calibrator_, &Calibrator::finished, this, [this](const QString& error) {
    progress_ = error.isEmpty() ? QString() : tr("Not calibrated: %1").arg(error);
    show_calibration();
    if (error.isEmpty()) session_.evaluate_again();
  });
}

QString NoticeBar::left_text(int done, int total) const {
  if (done < 1) return {};
  const auto seconds = static_cast<double>(since_.elapsed()) / 1000 / done * (total - done);
  return tr("; about %1 left").arg(rough_time_text(seconds));
}

NoticeBar::Line NoticeBar::make_line(const QString& button) {
  Line line{new QFrame, new QLabel, new QPushButton(button)};
  line.text->setWordWrap(true);
  line.text->setTextInteractionFlags(Qt::TextSelectableByMouse);
  auto* row = new QHBoxLayout(line.frame);
  row->setContentsMargins(8, 3, 6, 3);
  row->addWidget(line.text, 1);
  row->addWidget(line.button);
  line.frame->hide();
  return line;
}

void NoticeBar::show_line(const Line& line, const QString& text, const QColor& color) {
  line.text->setText(text);
  line.text->setStyleSheet("color: " + color.name());
  line.frame->setVisible(!text.isEmpty());
}

void NoticeBar::show_problems() {
  QStringList lines;
  for (const Problem& each : form_.problems()) lines << each.message.section('\n', 0, 0);
  const auto study = session_.study();
  if (!lines.isEmpty() && study) {
    lines << tr("Shown, dimmed: %1 on %2 as it was before.")
                 .arg(QString::fromStdString(study->scenario.model.name),
                      QString::fromStdString(study->scenario.cluster));
  }
  show_line(problems_, lines.join('\n'), bad(palette()));
}

void NoticeBar::show_calibration() {
  const auto study = session_.study();
  const QString text = progress_.isEmpty() && study ? doubt(*study) : progress_;
  calibration_.button->setEnabled(!calibrator_->running());
  show_line(calibration_, text, warning(palette()));
}

void NoticeBar::calibrate() {
  const auto study = session_.study();
  if (!study || calibrator_->running()) return;
  CalibrationOptions options;
  const std::string& cluster = study->scenario.cluster;
  const auto ranks = static_cast<int>(study->scenario.run.ranks);
  if (cluster == "local-cuda") {
    options.backend = "cuda";
  } else {
    options.ranks = {1, 2, 4};
    const bool usual = std::count(options.ranks.begin(), options.ranks.end(), ranks) > 0;
    if (!usual) options.ranks.push_back(ranks);
  }
  progress_ = tr("Calibrating…");
  since_.start();
  calibrator_->start(options, local_cluster_path(cluster));
  show_calibration();
}

QString NoticeBar::calibration_text() const {
  return calibration_.frame->isHidden() ? QString() : calibration_.text->text();
}

QString NoticeBar::problem_text() const {
  return problems_.frame->isHidden() ? QString() : problems_.text->text();
}

}  // namespace zl::gui
