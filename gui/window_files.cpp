// Files that come to the main window: opened, dropped, and those of the scenario that change.
#include <QDragEnterEvent>
#include <QFileInfo>
#include <QLabel>
#include <QMenu>
#include <QMimeData>
#include <QUrl>

#include "core/base/error.h"
#include "gui/import_file.h"
#include "gui/main_window.h"
#include "gui/models/table_model.h"
#include "gui/views/runs_page.h"
#include "gui/views/train_page.h"

namespace zl::gui {

// A strategy, model or cluster file that changes is read again.
void MainWindow::follow_files() {
  QStringList files;
  std::vector<std::string> names = session_.document().strategies();
  for (const char* key : {"model", "cluster"}) names.push_back(session_.document().get(key));
  for (const std::string& name : names) {
    const QFileInfo file(QString::fromStdString(name));
    if (!name.starts_with('{') && file.isFile()) files << file.absoluteFilePath();
  }
  if (!watcher_.files().isEmpty()) watcher_.removePaths(watcher_.files());
  if (!files.isEmpty()) watcher_.addPaths(files);
}

void MainWindow::open_file(const QString& file) { say(take_file(file)); }

// What became of it.
QString MainWindow::take_file(const QString& file) {
  try {
    const ImportedFile imported = import_file(file.toStdString(), session_.document());
    const QString message = QString::fromStdString(imported.message);
    if (imported.kind == ImportedFile::Kind::database) {
      runs_->open(file.toStdString());
      training_->set_database(file.toStdString());
      show_view("runs");
    } else if (imported.kind == ImportedFile::Kind::scenario) {
      session_.open(*imported.document);
    } else if (imported.document && *imported.document == session_.document()) {
      session_.evaluate_again();  // it is there already: its text may be another
    } else if (imported.document) {
      session_.edit(*imported.document, tr("Import %1").arg(file));
    }
    remember(file);
    if (!imported.report.rows.empty() && !imported.document) {
      keys_->set_table(imported.report);
      keys_title_->setText(tr("Keys of %1").arg(file));
      show_view("keys");
    }
    return message;
  } catch (const Error& error) {
    return error.what();
  }
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  QStringList said;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) said << take_file(url.toLocalFile());
  }
  say(said.join(" · "));
}

void MainWindow::remember(const QString& file) {
  constexpr qsizetype kMost = 8;
  const QString path = QFileInfo(file).absoluteFilePath();
  recent_.removeAll(path);
  recent_.prepend(path);
  while (recent_.size() > kMost) recent_.removeLast();
}

void MainWindow::build_recent_menu(QMenu& menu) {
  QMenu* recent = menu.addMenu(tr("Open &recent"));
  connect(recent, &QMenu::aboutToShow, this, [this, recent] {
    recent->clear();
    for (const QString& file : recent_)
      recent->addAction(file, this, [this, file] { open_file(file); });
    if (recent_.isEmpty()) recent->addAction(tr("Nothing was opened yet"))->setEnabled(false);
  });
}

}  // namespace zl::gui
