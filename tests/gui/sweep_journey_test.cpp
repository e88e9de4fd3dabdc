// Lists of values in the form, and what every table says of the memory that is left.
#include "gui/models/strategy_model.h"
#include "gui/models/table_model.h"
#include "gui/views/fit_page.h"
#include "gui/views/mesh_panel.h"
#include "gui/views/strategy_view.h"
#include "gui/views/sweep_page.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

Cell value(const Table& table, std::size_t row, const std::string& column) {
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name == column) return table.rows.at(row).at(i);
  }
  return {};
}

TEST(SweepJourney, AListInAFieldIsATableOfEveryCombination) {
  test::Desk desk(test::llama_on_a_node().with_strategies({"zero-2", "zero-3"}));
  MainWindow& window = desk.window;
  SweepPage& sweep = window.sweep();
  const auto wait = [&] { ASSERT_TRUE(test::eventually([&] { return !sweep.running(); })); };
  test::type_into(window, "run.micro_batch", "1,2");
  EXPECT_TRUE(window.view("sweep")->isVisible());
  EXPECT_EQ(sweep.field("run.micro_batch")->text(), "1,2");
  wait();
  EXPECT_EQ(desk.session.document(), test::llama_on_a_node().with_strategies({"zero-2", "zero-3"}))
      << "the scenario is as it was";
  ASSERT_EQ(sweep.table()->rowCount(), 4);
  const Table& table = sweep.table()->table();
  EXPECT_EQ(table.columns[1].name, "micro-batch");
  EXPECT_EQ(table.rows[2][1], Cell(std::int64_t{2}));
  // A row is what the scenario alone is.
  desk.session.edit_key("run.micro_batch", "2");
  desk.session.wait();
  EXPECT_EQ(value(table, 3, "memory"), Cell(desk.session.study()->strategies[1].reserved()));
  desk.session.undo().undo();
  desk.session.wait();
  sweep.ask("cluster", "8xh100, 16xh100,8xh10");
  wait();
  EXPECT_EQ(sweep.table()->rowCount(), 8);
  EXPECT_TRUE(sweep.state().startsWith("6 combinations; 2 cannot be run: ")) << "of 8xh10";
  EXPECT_TRUE(sweep.state().contains("\"h10\"")) << sweep.state().toStdString();
  EXPECT_EQ(sweep.table()->table().columns[2].name, "ranks") << "those of each cluster";
  sweep.field("cluster")->clear();
  QStringList many;
  for (int i = 1; i < 600; ++i) many << QString::number(i);
  sweep.ask("run.gradient_accumulation", many.join(","));
  EXPECT_TRUE(sweep.state().contains("more than 1000 combinations"));
  EXPECT_FALSE(sweep.running());
}

// As `zerolab run --tensor 1,2 --pipeline 2`: of every strategy.
TEST(SweepJourney, AListInTheMeshIsATableOfEveryMesh) {
  const Document document = test::llama_on_a_node().with_strategies({"zero-1", "zero-3"});
  test::Desk desk(document);
  SweepPage& sweep = desk.window.sweep();
  MeshPanel& mesh = test::form(desk.window).mesh();
  auto* tensor = qobject_cast<QLineEdit*>(mesh.field("tensor"));
  tensor->setFocus();
  QTest::keyClicks(tensor, "2, 4");
  QTest::keyClick(tensor, Qt::Key_Return);
  EXPECT_TRUE(desk.window.view("sweep")->isVisible());
  EXPECT_EQ(tensor->text(), "") << "as it was";
  ASSERT_TRUE(test::eventually([&] { return !sweep.running(); }));
  EXPECT_EQ(desk.session.document(), document);
  const Table& table = sweep.table()->table();
  const auto names = [&] {
    std::vector<std::string> all;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      all.push_back(std::get<std::string>(value(table, row, "strategy")));
    }
    return all;
  };
  EXPECT_EQ(names(),
            (std::vector<std::string>{"zero-1+tp2", "zero-3+tp2", "zero-1+tp4", "zero-3+tp4"}));
  sweep.field("tensor")->clear();
  sweep.field("pipeline")->setText("2");
  sweep.ask("schedule", "1f1b,zb-h1, zigzag");
  ASSERT_TRUE(test::eventually([&] { return !sweep.running(); }));
  EXPECT_EQ(names().size(), 4U);
  EXPECT_TRUE(sweep.state().startsWith("3 combinations; 1 cannot be run: "))
      << sweep.state().toStdString();
  EXPECT_TRUE(sweep.state().contains("zigzag")) << sweep.state().toStdString();
  // A list of layers is one value: it stays the panel's.
  auto* layers = qobject_cast<QLineEdit*>(mesh.field("layers_per_stage"));
  layers->setText("16,16");
  Q_EMIT layers->editingFinished();
  EXPECT_EQ(sweep.field("schedule")->text(), "1f1b,zb-h1, zigzag");
}

// What the command line calls headroom: the bytes that decide are what the software would hold.
TEST(SweepJourney, HeadroomIsOfTheBytesThatDecideInEveryTable) {
  test::Desk desk(test::llama_on_a_node());
  const Study& study = *desk.session.study();
  const StrategyStudy& three = *study.find("zero-3");
  EXPECT_GT(three.result.reserved_device, three.result.peak_device.total()) << "fragmentation";
  EXPECT_EQ(three.reserved(), three.result.software_held.device);
  EXPECT_GT(three.reserved(), three.result.software_held.in_use);
  const auto left = static_cast<double>(study.budget - three.reserved());
  const QAbstractItemModel& model = desk.window.strategies().model();
  int column = 0;
  while (model.headerData(column, Qt::Horizontal, Qt::DisplayRole) != "headroom") ++column;
  EXPECT_EQ(model.index(3, column).data(kSortRole).toDouble(), left);
  desk.window.show_view("fit");
  auto* fit = qobject_cast<FitPage*>(desk.window.view("fit"));
  ASSERT_TRUE(test::eventually([&] { return fit->table()->rowCount() > 0; }));
  const Table& advice = fit->table()->table();
  std::size_t headroom = 0;
  while (advice.columns.at(headroom).name != "headroom") ++headroom;
  bool found = false;
  for (const auto& row : advice.rows) {
    found |= row[2] == Cell(std::string("ZeRO stage 0 → 3")) &&
             row[headroom] == Cell(study.budget - three.reserved());
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace zl::gui
