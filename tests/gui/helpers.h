// What the dashboard's tests share: an evaluated session, a window, waiting for what is under way.
// Ownership: fixtures own what they make. Threads: GUI thread.
#pragma once

#include <QTemporaryDir>
#include <QTest>
#include <fstream>
#include <string>

#include "gui/main_window.h"
#include "gui/session.h"

namespace zl::gui::test {

inline constexpr int kLong = 60'000;  // milliseconds after which waiting has failed

template <class Condition>
bool eventually(Condition condition) {
  return QTest::qWaitFor(condition, kLong);
}

inline Document llama_on_a_node() {
  return Document::parse(
      R"({"schema": 1, "model": "llama3-8b", "cluster": "8xh100", "run": {"precision": "bf16"}})",
      "llama");
}

// Two steps of a model of a few thousand parameters.
inline Document tiny_study() { return Document::open("tiny-gpt2"); }

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

}  // namespace zl::gui::test
