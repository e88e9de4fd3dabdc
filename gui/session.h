// The state behind the window: the document with its undo history, the latest study, what is
// selected. Every view reads it and follows its signals.
// Ownership: owns the evaluator and the thread that it works in; views refer to the session.
// Threads: GUI thread.
#pragma once

#include <QObject>
#include <QString>
#include <QStringList>
#include <QUndoStack>
#include <memory>

#include "gui/background.h"
#include "scenarios/planner/evaluator.h"

namespace zl::gui {

class Session : public QObject {
  Q_OBJECT

 public:
  explicit Session(QObject* parent = nullptr);

  const Document& document() const { return document_; }
  QUndoStack& undo() { return undo_; }
  // The study of the last document that evaluated; null before the first.
  std::shared_ptr<const Study> study() const { return study_; }
  const QString& error() const { return error_; }  // of the current document; empty: none
  bool evaluating() const { return evaluating_; }

  // Replaces the document and forgets the history.
  void open(Document document);
  // One undoable edit; edits with the same merge key in a row become one. A scenario that is no
  // longer the one that was opened loses its comment and gets a name of its own.
  void edit(Document document, const QString& what, const QString& merge_key = {});
  // The key's new value as typed, "" removes it.
  void edit_key(const QString& path, const QString& value);

  // Strategies that the charts show: all but the hidden ones, in the study's order.
  std::vector<const StrategyStudy*> shown() const;
  const QStringList& hidden() const { return hidden_; }
  void hide(const QStringList& strategies);  // these and no others
  // Those that people point at: charts highlight them and go on showing the others.
  const QStringList& selection() const { return selection_; }
  void select(const QStringList& strategies);
  // The strategy that views of a single one show: the first selected, else the first that fits.
  const StrategyStudy* current() const;
  const QString& baseline() const { return baseline_; }
  void set_baseline(const QString& strategy);  // again: removes it

  // The same document once more: the machine behind it has changed.
  void evaluate_again() { set_document(document_); }
  // Everything shown is to be written anew, in another unit.
  void notify_views();
  // Blocks until the current document is evaluated; for screenshots and tests.
  void wait();

 Q_SIGNALS:
  void opened();  // before document_changed
  void document_changed();
  void evaluation_started();
  void study_changed();
  void failed(const QString& message);
  void selection_changed();
  void filter_changed();
  void baseline_changed();

 private:
  friend class EditCommand;
  void set_document(Document document);
  void accept(std::shared_ptr<const Study> study);
  void refuse(const QString& error);

  Document document_;
  Document opened_;
  QUndoStack undo_;
  std::shared_ptr<const Study> study_;
  QString error_;
  QStringList selection_, hidden_;
  QString baseline_;
  bool evaluating_ = false;
  Evaluator evaluator_;  // of the thread below, which ends first
  Background evaluation_;
};

}  // namespace zl::gui
