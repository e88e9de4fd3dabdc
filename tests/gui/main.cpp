// Runs the dashboard's tests without a display and away from the user's files.
#include <gtest/gtest.h>

#include <QApplication>
#include <QTemporaryDir>

#include "gui/theme.h"

int main(int argc, char** argv) {
  if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir home;
  for (const char* name : {"XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"}) {
    qputenv(name, home.path().toUtf8());
  }
  testing::InitGoogleTest(&argc, argv);
  const QApplication application(argc, argv);
  zl::gui::apply_appearance(zl::gui::Appearance::light);
  return RUN_ALL_TESTS();
}
