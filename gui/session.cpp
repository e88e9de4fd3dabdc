#include "gui/session.h"

#include <QCoreApplication>
#include <QEventLoop>
#include <QHash>

#include "core/base/text.h"

namespace zl::gui {

// What the scenario is called once it was changed: "NAME, changed", or by model and cluster when
// these are others. Which strategies are listed does not count: a run is of one of them.
Document renamed(const Document& opened, const Document& next) {
  bool changed = false, other = false;
  for (const std::string& path : Document::differences(opened, next)) {
    if (path == "name" || path == "x-comment" || path == "strategies") continue;
    changed = true;
    other = other || path.starts_with("model") || path.starts_with("cluster");
  }
  if (!changed) return opened.with("strategies", next.get("strategies"));
  const auto name_at = [&next](const std::string& key) {
    return name_of_file(next.get(next.is_inline(key) ? key + ".name" : key));
  };
  const std::string mark = ", changed";
  std::string name = opened.get("name");
  if (name.empty()) name = name_of_file(opened.source());
  if (name.ends_with(mark)) name.resize(name.size() - mark.size());
  name += mark;
  if (other) {
    const std::string cluster = name_at("cluster");
    name = name_at("model") + " on " + (cluster.empty() ? "local" : cluster);
  }
  return next.with("name", name).with("x-comment", "");
}

class EditCommand : public QUndoCommand {
 public:
  EditCommand(Session& session, Document after, const QString& text, const QString& merge_key)
      : QUndoCommand(text),
        session_(session),
        before_(session.document()),
        after_(std::move(after)),
        merge_key_(merge_key) {}

  void undo() override { session_.set_document(before_); }
  void redo() override { session_.set_document(after_); }
  int id() const override {
    return merge_key_.isEmpty() ? -1 : static_cast<int>(qHash(merge_key_) & 0x7fffffff);
  }
  bool mergeWith(const QUndoCommand* other) override {
    const auto* next = static_cast<const EditCommand*>(other);
    if (next->merge_key_ != merge_key_) return false;
    after_ = next->after_;
    return true;
  }

 private:
  Session& session_;
  Document before_, after_;
  QString merge_key_;
};

Session::Session(QObject* parent) : QObject(parent) {
  connect(&evaluation_, &Background::failed, this, &Session::refuse);
}

void Session::open(Document document) {
  undo_.clear();
  selection_.clear();
  hidden_.clear();
  baseline_.clear();
  opened_ = document;
  Q_EMIT opened();
  set_document(std::move(document));
  Q_EMIT filter_changed();
  Q_EMIT selection_changed();
  Q_EMIT baseline_changed();
}

void Session::edit(Document document, const QString& what, const QString& merge_key) {
  document = renamed(opened_, document);
  if (document == document_) return;
  undo_.push(new EditCommand(*this, std::move(document), what, merge_key));
}

void Session::edit_key(const QString& path, const QString& value) {
  const QString what = value.isEmpty() ? tr("Reset %1").arg(path) : tr("%1 = %2").arg(path, value);
  edit(document_.with(path.toStdString(), value.trimmed().toStdString()), what);
}

void Session::set_document(Document document) {
  document_ = std::move(document);
  error_.clear();
  evaluating_ = true;
  evaluation_.start([this, document = document_](const Background::Link& link) {
    return [this, study = evaluator_.evaluate(document, link.cancelled)] { accept(study); };
  });
  Q_EMIT document_changed();
  Q_EMIT evaluation_started();
}

void Session::accept(std::shared_ptr<const Study> study) {
  evaluating_ = false;
  study_ = std::move(study);
  Q_EMIT study_changed();
}

void Session::refuse(const QString& error) {
  evaluating_ = false;
  error_ = error;
  Q_EMIT failed(error);
}

std::vector<const StrategyStudy*> Session::shown() const {
  std::vector<const StrategyStudy*> shown;
  if (!study_) return shown;
  for (const StrategyStudy& each : study_->strategies) {
    if (!hidden_.contains(QString::fromStdString(each.name()))) shown.push_back(&each);
  }
  return shown;
}

void Session::hide(const QStringList& strategies) {
  if (strategies == hidden_) return;
  hidden_ = strategies;
  Q_EMIT filter_changed();
}

void Session::select(const QStringList& strategies) {
  if (strategies == selection_) return;
  selection_ = strategies;
  Q_EMIT selection_changed();
}

const StrategyStudy* Session::current() const {
  const auto candidates = shown();
  for (const StrategyStudy* each : candidates) {
    if (selection_.contains(QString::fromStdString(each->name()))) return each;
  }
  for (const StrategyStudy* each : candidates) {
    if (each->fits()) return each;
  }
  return candidates.empty() ? nullptr : candidates.front();
}

void Session::set_baseline(const QString& strategy) {
  baseline_ = baseline_ == strategy ? QString() : strategy;
  Q_EMIT baseline_changed();
}

void Session::notify_views() {
  if (study_) Q_EMIT study_changed();
}

void Session::wait() {
  while (evaluating_) {
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents |
                                    QEventLoop::ExcludeUserInputEvents);
  }
}

}  // namespace zl::gui
