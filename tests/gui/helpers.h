// What the dashboard's tests share: an evaluated session, a window, waiting for what is under way.
// Ownership: fixtures own what they make. Threads: GUI thread.
#pragma once

#include <gtest/gtest.h>

#include <QLineEdit>
#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <string>

#include "gui/main_window.h"
#include "gui/session.h"
#include "gui/views/scenario_dock.h"
#include "tests/planner/documents.h"

namespace zl::gui::test {

inline constexpr int kLong = 60'000;  // milliseconds after which waiting has failed

template <class Condition>
bool eventually(Condition condition) {
  return QTest::qWaitFor(condition, kLong);
}

using zl::test::llama_on_a_node;
using zl::test::tiny_study;

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// A session with its window, a temporary database, and a document that has been evaluated.
struct Desk {
  explicit Desk(Document document)
      : window(session, {folder.filePath("runs.db").toStdString(), ""}) {
    session.open(std::move(document));
    session.wait();
    window.show();
  }
  std::string path(const char* name) const { return folder.filePath(name).toStdString(); }

  QTemporaryDir folder;
  Session session;
  MainWindow window;
};

inline ScenarioDock& form(MainWindow& window) { return *window.findChild<ScenarioDock*>(); }

// As a person does: all of the field's text gives way, Return takes it.
inline void type_into(MainWindow& window, const char* key, const QString& text) {
  auto* line = qobject_cast<QLineEdit*>(form(window).field(key));
  ASSERT_NE(line, nullptr) << key;
  line->setFocus();
  line->selectAll();
  QTest::keyClicks(line, text);
  QTest::keyClick(line, Qt::Key_Return);
}

}  // namespace zl::gui::test
