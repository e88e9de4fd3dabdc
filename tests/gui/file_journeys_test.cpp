// DeepSpeed files opened in the window, again and beside one of the same name. Each step is checked
// before the next.
#include <gtest/gtest.h>

#include <QDir>
#include <QDropEvent>
#include <QMimeData>
#include <QStatusBar>
#include <QUrl>

#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

TEST(FileJourney, AFileThatChangesIsReadAgainAndStandsOnlyOnceInTheScenario) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-0"}));
  const std::string file = desk.path("ds.json");
  const auto write = [&](const char* stage) {
    test::write_file(file, std::string(R"({"train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": )") +
                               stage + "}}");
  };
  const auto stage = [&] {
    const StrategyStudy* found = desk.session.study()->find("ds");
    return found ? found->imported.strategy.zero.stage : -1;
  };
  write("1");
  desk.window.open_file(QString::fromStdString(file));
  desk.session.wait();
  EXPECT_EQ(stage(), 1);
  write("2");
  desk.window.open_file(QString::fromStdString(file));
  desk.session.wait();
  EXPECT_EQ(stage(), 2) << "dropped again";
  EXPECT_EQ(desk.session.study()->strategies.size(), 2u);
  EXPECT_EQ(desk.session.error(), QString());
  // Named another way it is the same file.
  QDir().mkdir(desk.folder.filePath("below"));
  ASSERT_TRUE(QFile::link(QString::fromStdString(file), desk.folder.filePath("link.json")));
  for (const char* name : {"below/../ds.json", "link.json"}) {
    desk.window.open_file(QString::fromStdString(desk.path(name)));
    desk.session.wait();
    EXPECT_EQ(desk.session.study()->strategies.size(), 2u) << name;
    EXPECT_EQ(desk.session.error(), QString()) << name;
  }
  write("3");
  EXPECT_TRUE(test::eventually([&] { return stage() == 3; })) << "saved in an editor";
}

// Else its address would be typed into the field.
TEST(FileJourney, AFileThatIsDroppedOnAFieldIsTheWindows) {
  test::Desk desk(test::tiny_study());
  EXPECT_TRUE(desk.window.acceptDrops());
  const auto fields = desk.window.findChildren<QLineEdit*>();
  EXPECT_GT(fields.size(), 10);
  for (const QLineEdit* field : fields) {
    EXPECT_FALSE(field->acceptDrops()) << field->accessibleName().toStdString();
  }
}

TEST(FileJourney, TextsFoldersAndWeightsAreKnownByWhatIsInThem) {
  test::Desk desk(test::tiny_study());
  const std::string text = desk.path("book"), weights = desk.path("w.json");
  test::write_file(text, "In the beginning God created the heaven and the earth.\n");
  test::write_file(weights, std::string("\x02\0\0\0\0\0\0\0{}", 10));
  QDir(desk.folder.path()).mkpath("model");
  test::write_file(desk.path("model/config.json"),
                   R"({"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2,
                       "n_positions": 128, "vocab_size": 300})");
  const auto drop = [&](const QStringList& names) {
    QMimeData data;
    QList<QUrl> urls;
    for (const QString& name : names) urls << QUrl::fromLocalFile(desk.folder.filePath(name));
    data.setUrls(urls);
    QDragEnterEvent enters(QPoint(), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&desk.window, &enters);
    QDropEvent event(QPointF(), Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QCoreApplication::sendEvent(&desk.window, &event);
    desk.session.wait();
    return desk.window.statusBar()->currentMessage();
  };
  const QString said = drop({"w.json", "book"});
  EXPECT_TRUE(said.contains("this is a safetensors file")) << said.toStdString();
  EXPECT_TRUE(said.contains("trains on ")) << "of both something is said: " << said.toStdString();
  EXPECT_EQ(desk.session.document().get("run.data"), text);
  drop({"model"});
  EXPECT_EQ(desk.session.study()->scenario.model.hidden, 64);
}

TEST(FileJourney, TwoFilesOfOneNameLiveTogether) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-0"}));
  QDir(desk.folder.path()).mkpath("one");
  QDir(desk.folder.path()).mkpath("two");
  for (const char* file : {"one/ds.json", "two/ds.json"}) {
    test::write_file(desk.path(file), R"({"train_micro_batch_size_per_gpu": 1,
                                          "zero_optimization": {"stage": 2}})");
    desk.window.open_file(QString::fromStdString(desk.path(file)));
    desk.session.wait();
    EXPECT_EQ(desk.session.error(), QString());
  }
  EXPECT_NE(desk.session.study()->find("ds (one)"), nullptr);
  EXPECT_NE(desk.session.study()->find("ds (two)"), nullptr);
}

}  // namespace
}  // namespace zl::gui
