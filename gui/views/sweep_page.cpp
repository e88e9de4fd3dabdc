#include "gui/views/sweep_page.h"

#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableView>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "gui/models/mesh_edit.h"
#include "gui/models/table_model.h"
#include "gui/views/table_view.h"
#include "results/run_tables.h"
#include "scenarios/planner/grid.h"

namespace zl::gui {
namespace {

struct SweptKey {
  const char* key;
  const char* label;
  const char* example;
};

// The order of `zerolab run`'s columns; then the mesh of every strategy.
constexpr std::array kKeys = {SweptKey{"model", "Model", "llama3-8b, llama2-13b"},
                              SweptKey{"cluster", "Cluster", "8xh100, 8xa100-80"},
                              SweptKey{"run.ranks", "Ranks", "4, 8"},
                              SweptKey{"run.precision", "Precision", "bf16, fp16"},
                              SweptKey{"run.software", "Software", "torch-fsdp2"},
                              SweptKey{"run.sequence_length", "Sequence", "2k, 8k"},
                              SweptKey{"run.micro_batch", "Micro-batch", "1, 2, 4"},
                              SweptKey{"run.gradient_accumulation", "Accumulation", "1, 4, 16"},
                              SweptKey{"tensor", "Tensor", "1, 2, 4"},
                              SweptKey{"pipeline", "Pipeline", "1, 2, 4"},
                              SweptKey{"schedule", "Schedule", "1f1b, zb-h1"},
                              SweptKey{"virtual_stages", "Virtual stages", "1, 2"}};
constexpr int kColumns = 4;

}  // namespace

SweepPage::SweepPage(Session& session, QWidget* parent)
    : QWidget(parent), session_(session), evaluation_(new Session(this)) {
  auto* grid_layout = new QGridLayout;
  for (std::size_t i = 0; i < kKeys.size(); ++i) {
    const int row = static_cast<int>(i) / kColumns * 2, column = static_cast<int>(i) % kColumns;
    auto* line = new QLineEdit;
    line->setPlaceholderText(tr(kKeys[i].example));
    line->setAccessibleName(tr("Values of %1").arg(tr(kKeys[i].label)));
    line->setToolTip(tr("Values separated by commas; empty: as in the scenario"));
    auto* label = new QLabel(tr(kKeys[i].label));
    label->setBuddy(line);
    grid_layout->addWidget(label, row, column);
    grid_layout->addWidget(line, row + 1, column);
    connect(line, &QLineEdit::returnPressed, this, &SweepPage::start);
    fields_.emplace_back(kKeys[i].key, line);
  }
  button_ = new QPushButton(tr("&Sweep"));
  setup_ = new QLabel(tr("Every combination of the values, of every ticked strategy, is a row."));
  state_ = new QLabel;
  for (QLabel* label : {setup_, state_}) label->setWordWrap(true);
  table_ = new TableModel(this);
  auto* bar = new QHBoxLayout;
  bar->addWidget(setup_, 1);
  bar->addWidget(button_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addLayout(grid_layout);
  layout->addLayout(bar);
  layout->addWidget(state_);
  layout->addWidget(make_table_view(table_, tr("Combinations"), this), 1);
  setFocusProxy(fields_.front().second);
  connect(button_, &QPushButton::clicked, this, &SweepPage::start);
  connect(evaluation_, &Session::study_changed, this, [this] { take({}); });
  connect(evaluation_, &Session::failed, this, &SweepPage::take);
}

bool SweepPage::takes(const QString& key) {
  return std::any_of(kKeys.begin(), kKeys.end(),
                     [&key](const SweptKey& each) { return key == each.key; });
}

QLineEdit* SweepPage::field(const QString& key) const {
  for (const auto& [name, line] : fields_) {
    if (name == key) return line;
  }
  return nullptr;
}

QString SweepPage::state() const { return state_->text(); }

void SweepPage::ask(const QString& key, const QString& values) {
  QLineEdit* line = field(key);
  if (line == nullptr) return;
  line->setText(values);
  start();
}

void SweepPage::start() {
  std::vector<GridAxis> axes, of_mesh;
  for (const auto& [key, line] : fields_) {
    const QString text = line->text().trimmed();
    if (text.isEmpty()) continue;
    const bool cuts = std::ranges::find(kMeshKeys, key.toStdString()) != kMeshKeys.end();
    (cuts ? of_mesh : axes).push_back({key.toStdString(), listed_values(text.toStdString())});
  }
  results_.clear();
  first_error_.clear();
  refused_ = 0;
  waiting_.clear();
  try {
    for (Document& each : grid(session_.document(), axes)) waiting_.push_back(std::move(each));
    for (const GridAxis& axis : of_mesh) cut(axis);
  } catch (const Error& error) {
    waiting_.clear();
    state_->setText(error.what());
    return;
  }
  asked_ = static_cast<int>(waiting_.size());
  next();
}

// Each of the documents with each of the values.
void SweepPage::cut(const GridAxis& axis) {
  const auto study = session_.study();
  if (!study) return;
  check_combinations(axis, waiting_.size());
  std::deque<Document> longer;
  for (const Document& before : waiting_) {
    for (const std::string& value : axis.values) {
      longer.push_back(with_mesh_key(*study, before, axis.key, value));
    }
  }
  waiting_ = std::move(longer);
}

void SweepPage::next() {
  show_results();
  if (!waiting_.empty()) evaluation_->open(waiting_.front());
}

void SweepPage::take(const QString& error) {
  if (waiting_.empty()) return;
  waiting_.pop_front();
  if (error.isEmpty()) {
    for (const StrategyStudy& each : evaluation_->study()->strategies) {
      results_.push_back(each.result);
      // A need is no measurement: what did not fit has no times, as in `zerolab run`.
      if (!each.fits()) results_.back().step_time = {};
      if (!each.fits()) results_.back().tokens_per_second = results_.back().mfu = 0;
    }
  } else {
    if (refused_++ == 0) first_error_ = error.section('\n', 0, 0);
  }
  next();
}

void SweepPage::show_results() {
  const int done = asked_ - static_cast<int>(waiting_.size());
  QString text = waiting_.empty() ? tr("%1 combinations").arg(asked_)
                                  : tr("%1 of %2 combinations").arg(done).arg(asked_);
  if (refused_ > 0) text += tr("; %1 cannot be run: %2").arg(refused_).arg(first_error_);
  state_->setText(text);
  if (results_.empty()) return table_->set_table({});
  setup_->setText(QString::fromStdString(setup_line(results_)));
  table_->set_table(summary_table(results_));
}

}  // namespace zl::gui
