// What the main window explains: its keys, its words, itself.
#include <QAction>
#include <QApplication>
#include <QDialog>
#include <QHeaderView>
#include <QMessageBox>
#include <QTableView>
#include <QVBoxLayout>

#include "gui/main_window.h"
#include "gui/models/table_model.h"
#include "gui/views/table_view.h"
#include "results/environment.h"

namespace zl::gui {
namespace {

// A table in a window of its own; its last column takes what is left.
void show_sheet(QWidget& parent, const QString& title, Table table) {
  auto* sheet = new QDialog(&parent);
  sheet->setAttribute(Qt::WA_DeleteOnClose);
  sheet->setWindowTitle(title);
  auto* model = new TableModel(sheet);
  model->set_table(std::move(table));
  QTableView* view = make_table_view(model, title, sheet);
  view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  view->horizontalHeader()->setStretchLastSection(true);
  view->setWordWrap(true);
  auto* layout = new QVBoxLayout(sheet);
  layout->addWidget(view);
  sheet->resize(720, 560);
  sheet->show();
  view->resizeRowsToContents();
}

// The field's words as this program uses them.
constexpr std::pair<const char*, const char*> kWords[] = {
    {"activation", "What a block keeps for the backward, and what it needs while it runs"},
    {"all-gather", "Every rank gets all shards: how sharded weights come together (ZeRO-3)"},
    {"all-reduce", "Every rank gets the sum over all: how gradients are averaged (DDP)"},
    {"bubble", "Time in which a pipeline stage has nothing to do"},
    {"calibration", "Small models trained on this machine, from which its prices are fitted"},
    {"capacity", "Device memory of one rank, or the budget of the form"},
    {"error bar", "The range that holds the true step time in nine cases of ten"},
    {"exposed communication", "Collectives that no compute hides: the device waits"},
    {"fragmentation", "Memory that is reserved and free, but in pieces too small for a request"},
    {"global batch", "Micro-batch x accumulation x ranks: what one optimizer step sees"},
    {"gradient accumulation", "Micro-batches whose gradients are added up before one step"},
    {"headroom", "Capacity less what the memory pool of a rank reserves"},
    {"MFU", "Model FLOP/s utilisation: model FLOPs of a step / its time / the peak FLOP/s"},
    {"micro-batch", "Sequences of one rank in one forward"},
    {"offload", "Optimizer state or weights kept in host memory or files, not on the device"},
    {"Pareto front", "Strategies that no other one beats in memory and speed at once"},
    {"peak", "The moment at which a rank holds most memory"},
    {"rank", "One process of the training, one GPU"},
    {"recomputation", "The forward is repeated in the backward, so that less must be kept"},
    {"reduce-scatter", "Every rank gets its shard of the sum: how ZeRO-2 averages gradients"},
    {"stall", "The device waits for state that comes from host memory or files"},
    {"step", "One update of the weights: all micro-batches, reduction, optimizer"},
    {"strategy", "How training is laid out: ZeRO stage, recomputation, offload, precision, batch"},
    {"study", "A scenario evaluated: every strategy recorded, priced, and judged whether it fits"},
    {"wire", "Bytes that one rank sends to others"},
    {"ZeRO stage",
     "What is sharded over the ranks. 0: nothing, 1: optimizer state, 2: gradients "
     "too, 3: weights too"},
};

}  // namespace

void MainWindow::show_shortcuts() {
  Table table;
  table.columns = {{"keys", Align::left}, {"what they do", Align::left}};
  for (const QAction* action : findChildren<QAction*>()) {
    if (action->shortcut().isEmpty()) continue;
    table.rows.push_back({action->shortcut().toString().toStdString(),
                          QString(action->text()).remove('&').toStdString()});
  }
  const std::pair<const char*, const char*> fixed[] = {
      {"Escape", "shows all strategies again; in a search: back to the chart"},
      {"Space", "on the name of a strategy: shows or hides it in the charts"},
      {"Tab, Shift+Tab", "next or previous field or chart"},
      {"arrow keys", "in a chart: move over its parts"},
      {"Enter", "in a chart: select the strategy under the cursor"},
      {"P", "memory over time: jump to the peak"},
      {"W S A D", "timeline: zoom in and out, move left and right"},
      {"F", "timeline: zoom to the measured range or the selected operation"},
      {"M, Escape", "timeline: measure the selected operation, forget the measure"},
      {"0", "timeline: everything"},
      {"Backspace, Alt+Left, Alt+Right", "timeline: zoom history"},
      {"/", "timeline: search an operation"}};
  for (const auto& [keys, what] : fixed) {
    table.rows.push_back({std::string(keys), std::string(what)});
  }
  show_sheet(*this, tr("Keyboard shortcuts"), std::move(table));
}

void MainWindow::show_glossary() {
  Table table;
  table.columns = {{"word", Align::left}, {"what it means", Align::left}};
  for (const auto& [word, meaning] : kWords) {
    table.rows.push_back({std::string(word), std::string(meaning)});
  }
  show_sheet(*this, tr("Glossary"), std::move(table));
}

void MainWindow::show_about() {
  const Environment environment = detect_environment();
  QMessageBox::about(
      this, tr("About zerolab"),
      tr("<h3>zerolab %1</h3><p>Which training strategy to run on which hardware: what it costs in "
         "memory, time and communication, and whether that prediction is true.</p><p>Commit "
         "%2<br>%3<br>Results: %4</p><p>Apache License 2.0; Qt %5 under the LGPL 3.</p>")
          .arg(QApplication::applicationVersion(), QString::fromStdString(environment.commit),
               QString::fromStdString(environment.cpu),
               QString::fromStdString(options_.database.string()), qVersion()));
}

}  // namespace zl::gui
