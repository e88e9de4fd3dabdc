// The button that calibrates, with a measurement that takes no minute.
#include <QPushButton>
#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "gui/views/notice_bar.h"
#include "scenarios/files/clusters.h"
#include "tests/gui/helpers.h"

namespace zl::gui {
namespace {

TEST(CalibrateJourney, TheCalibrateButtonTakesTheBannerFromEveryPage) {
  test::Desk desk(test::tiny_study());
  const std::string file = local_cluster_path();
  ASSERT_FALSE(std::filesystem::exists(file)) << "of another test";
  NoticeBar& notices = desk.window.notices();
  CalibrationOptions asked;
  notices.calibrator().measure_by([&asked](const CalibrationOptions& options) {
    asked = options;
    options.progress("a toy", 0, 2);
    options.progress("another", 1, 2);
    sim::ClusterSpec machine = load_cluster("local");
    machine.calibration.emplace();
    for (const int ranks : options.ranks) machine.calibration->by_ranks.push_back({.ranks = ranks});
    return machine;
  });
  QPushButton* button = nullptr;
  for (QPushButton* each : notices.findChildren<QPushButton*>()) {
    if (each->text() == "Calibrate") button = each;
  }
  ASSERT_NE(button, nullptr);
  QTest::mouseClick(button, Qt::LeftButton);
  EXPECT_FALSE(button->isEnabled()) << "one at a time";
  QString last;
  QObject::connect(&notices.calibrator(), &Calibrator::progressed, &notices,
                   [&] { last = notices.calibration_text(); });
  ASSERT_TRUE(test::eventually([&] { return notices.calibration_text().isEmpty(); }));
  EXPECT_EQ(std::count(asked.ranks.begin(), asked.ranks.end(), 2), 1) << "those of the scenario";
  EXPECT_TRUE(last.startsWith("Calibrating, 2 of 2: another; about ")) << last.toStdString();
  desk.session.wait();
  for (const QString& name : MainWindow::view_names()) {
    desk.window.show_view(name);
    EXPECT_EQ(notices.calibration_text(), QString()) << name.toStdString();
  }
  desk.session.edit_key("run.ranks", "3");
  desk.session.wait();
  EXPECT_TRUE(notices.calibration_text().contains("not for 3")) << "times are extrapolated";
  std::filesystem::remove(file);
}

TEST(CalibrateJourney, ACalibrationThatFailsSaysWhy) {
  test::Desk desk(test::tiny_study());
  NoticeBar& notices = desk.window.notices();
  notices.calibrator().measure_by([](const CalibrationOptions&) -> sim::ClusterSpec {
    throw Error(ErrorCode::failed, "the machine is too small");
  });
  notices.calibrate();
  ASSERT_TRUE(test::eventually([&] { return !notices.calibrator().running(); }));
  EXPECT_EQ(notices.calibration_text(), "Not calibrated: the machine is too small");
}

}  // namespace
}  // namespace zl::gui
