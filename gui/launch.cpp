#include "gui/launch.h"

#include <QApplication>
#include <QCommandLineParser>
#include <QPixmap>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/files.h"
#include "gui/import_file.h"
#include "gui/main_window.h"
#include "gui/session.h"
#include "gui/theme.h"
#include "gui/views/explain_page.h"
#include "gui/views/explore_page.h"
#include "gui/views/plan_page.h"
#include "results/paths.h"
#include "results/store.h"
#include "scenarios/files/catalog.h"
#include "scenarios/files/file_kind.h"

namespace zl::gui {
namespace {

constexpr const char* kFirstStudy = "demo";

int fail(ErrorCode code, const std::string& message) {
  std::fprintf(stderr, "zerolab-gui: %s\n", message.c_str());
  return static_cast<int>(code);
}

bool asks_for(int argc, char** argv, const char* option) {
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], option, std::strlen(option)) == 0) return true;
  }
  return false;
}

// Qt aborts without a display, so this must be known before it starts.
bool has_display() {
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

QSize parse_size(const QString& text) {
  const QStringList parts = text.split('x');
  const QSize size = parts.size() == 2 ? QSize(parts[0].toInt(), parts[1].toInt()) : QSize();
  if (size.width() >= 200 && size.height() >= 150) return size;
  throw Error(ErrorCode::usage,
              "--size: \"" + text.toStdString() + "\" is not WIDTHxHEIGHT such as 1280x800");
}

void add_options(QCommandLineParser& parser) {
  parser.setApplicationDescription("The dashboard of zerolab: compare training strategies.");
  parser.addHelpOption();
  parser.addVersionOption();
  parser.addOptions(
      {{"scenario", "Study, model, scenario, DeepSpeed or config.json file to open.", "name"},
       {"view", "View to show: " + MainWindow::view_names().join(", ") + ".", "name"},
       {"screenshot", "Write a PNG of the window and end.", "file"},
       {"size", "Size of the window.", "WxH", "1280x800"},
       {"scale", "Pixels per point of the screenshot.", "factor", "1"},
       {"db", "Result database (see zerolab paths).", "file"},
       {"select", "Strategies to select, separated by commas.", "names"},
       {"baseline", "Strategy to compare with.", "name"},
       {"dark", "Dark colours."},
       {"light", "Light colours."}});
  parser.addPositionalArgument("scenario", "As --scenario.", "[scenario]");
}

// A strategy or a model alone: it joins a scenario.
bool is_part_of_scenario(const std::string& name) {
  if (catalog_has("studies", name) || catalog_has("models", name) || !is_file(name)) return false;
  const FileKind kind = file_kind(parse_json(read_file(name), name));
  return kind == FileKind::strategy || kind == FileKind::model;
}

// Of the last session's, else of the first study. Throws Error{invalid} when it is refused.
void open_part(MainWindow& window, Session& session, const std::string& file) {
  if (!window.restore()) session.open(Document::open(kFirstStudy));
  const ImportedFile imported = import_file(file, session.document());
  if (!imported.document) throw Error(ErrorCode::invalid, imported.message);
  session.edit(*imported.document, QObject::tr("Import %1").arg(QString::fromStdString(file)));
}

int take_screenshot(MainWindow& window, Session& session, const QString& file) {
  session.wait();
  if (!session.error().isEmpty()) return fail(ErrorCode::invalid, session.error().toStdString());
  window.show();
  QCoreApplication::processEvents();
  // Pages that evaluate for themselves begin when they are shown.
  for (Session* own : window.findChildren<Session*>()) own->wait();
  for (ExplorePage* page : window.findChildren<ExplorePage*>()) page->wait();
  for (ExplainPage* page : window.findChildren<ExplainPage*>()) page->wait();
  for (PlanPage* page : window.findChildren<PlanPage*>()) {
    if (page->isVisible()) page->start();
    page->wait();
  }
  // Labels that wrap take their height, and what holds them takes theirs: a level at a time.
  for (int level = 0; level < 8; ++level) QCoreApplication::processEvents();
  if (window.grab().save(file)) return 0;
  return fail(ErrorCode::failed, file.toStdString() + ": cannot be written as a picture");
}

int start(const QCommandLineParser& parser) {
  const bool screenshot = parser.isSet("screenshot");
  if (parser.isSet("dark") || parser.isSet("light") || screenshot) {
    apply_appearance(parser.isSet("dark") ? Appearance::dark : Appearance::light);
  } else {
    apply_appearance(Appearance::system);
  }
  Session session;
  QString scenario = parser.value("scenario");
  if (scenario.isEmpty() && !parser.positionalArguments().isEmpty()) {
    scenario = parser.positionalArguments().first();
  }
  WindowOptions options;
  options.database =
      parser.isSet("db") ? parser.value("db").toStdString() : database_path().string();
  // A file that is no database is refused, not shown as an empty page.
  if (parser.isSet("db") && std::filesystem::exists(options.database)) {
    Store::open(options.database, Store::Mode::read_only);
  }
  if (!screenshot) {
    options.settings = QString::fromStdString((config_folder() / "dashboard.ini").string());
  }
  MainWindow window(session, options);
  if (is_part_of_scenario(scenario.toStdString())) {
    open_part(window, session, scenario.toStdString());
  } else if (!scenario.isEmpty() || !window.restore()) {
    session.open(Document::open(scenario.isEmpty() ? kFirstStudy : scenario.toStdString()));
  }
  if (screenshot || parser.isSet("size")) window.resize(parse_size(parser.value("size")));
  if (parser.isSet("view") && !window.show_view(parser.value("view"))) {
    return fail(ErrorCode::usage, "--view: \"" + parser.value("view").toStdString() +
                                      "\" is not one of " +
                                      MainWindow::view_names().join(", ").toStdString());
  }
  if (parser.isSet("select")) session.select(parser.value("select").split(','));
  if (parser.isSet("baseline")) session.set_baseline(parser.value("baseline"));
  if (screenshot) return take_screenshot(window, session, parser.value("screenshot"));
  window.show();
  return QApplication::exec();
}

// Qt reads the scale before it knows our options.
void apply_scale(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], "--scale") == 0) qputenv("QT_SCALE_FACTOR", argv[i + 1]);
  }
}

}  // namespace

int launch(int argc, char** argv) {
  if (asks_for(argc, argv, "--screenshot") || asks_for(argc, argv, "--help") ||
      asks_for(argc, argv, "--version")) {
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  } else if (!has_display()) {
    return fail(ErrorCode::unavailable,
                "no display: neither DISPLAY nor WAYLAND_DISPLAY is set; `zerolab run` prints the "
                "same numbers, `zerolab-gui --screenshot FILE` draws them");
  }
  apply_scale(argc, argv);
  QApplication application(argc, argv);
  QApplication::setApplicationName("zerolab");
  QApplication::setApplicationDisplayName("zerolab");
  QApplication::setApplicationVersion(ZL_VERSION);
  if (!has_fonts()) {
    return fail(ErrorCode::unavailable,
                "no fonts: every letter would be a box; install one (apt-get install "
                "fonts-dejavu-core)");
  }
  QCommandLineParser parser;
  add_options(parser);
  if (!parser.parse(application.arguments())) {
    return fail(ErrorCode::usage, parser.errorText().toStdString() + " (see zerolab-gui --help)");
  }
  parser.process(application);  // --help, --version
  try {
    return start(parser);
  } catch (const Error& error) {
    return fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return fail(ErrorCode::failed, error.what());
  }
}

}  // namespace zl::gui
