#include "gui/views/hardware_panel.h"

#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QSlider>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "gui/units.h"
#include "scenarios/files/clusters.h"

namespace zl::gui {
namespace {

constexpr int kTicks = 24;        // of the slider in each direction
constexpr double kPerOctave = 8;  // ticks per doubling: from 1/8 to 8 times
// Where an edited cluster keeps the name of the one it was made from.
constexpr const char* kPreset = "x-preset";

struct Knob {
  const char* name;
  QString (*text)(const sim::ClusterSpec&);
  double (*get)(const sim::ClusterSpec&);
  void (*scale)(sim::ClusterSpec&, double);
};

QString rate_text(double bytes_per_second) { return bytes_text(bytes_per_second) + "/s"; }

// Of the better 16-bit type: before Ampere bf16 runs at the fp32 rate.
double half_peak(const sim::ClusterSpec& c) {
  return std::max(c.device.rate(DType::bf16).peak, c.device.rate(DType::f16).peak);
}

const Knob kKnob[HardwarePanel::kKnobs] = {
    {"memory", [](const auto& c) { return bytes_text(static_cast<double>(c.device.memory)); },
     [](const auto& c) { return static_cast<double>(c.device.memory); },
     [](auto& c, double f) {
       c.device.memory = std::llround(static_cast<double>(c.device.memory) * f);
     }},
    {"FLOP/s",
     [](const auto& c) { return count_text(std::round(half_peak(c) / 1e9) / 1e3) + " TFLOP/s"; },
     [](const auto& c) { return half_peak(c); },
     [](auto& c, double f) {
       for (auto& rate : c.device.rates) rate.peak *= f;
     }},
    {"memory bandwidth", [](const auto& c) { return rate_text(c.device.memory_bandwidth); },
     [](const auto& c) { return c.device.memory_bandwidth; },
     [](auto& c, double f) { c.device.memory_bandwidth *= f; }},
    {"within a node", [](const auto& c) { return rate_text(c.intra.bandwidth); },
     [](const auto& c) { return c.intra.bandwidth; },
     [](auto& c, double f) { c.intra.bandwidth *= f; }},
    {"between nodes", [](const auto& c) { return rate_text(c.inter.bandwidth); },
     [](const auto& c) { return c.inter.bandwidth; },
     [](auto& c, double f) { c.inter.bandwidth *= f; }},
    {"to the host", [](const auto& c) { return rate_text(c.host.bandwidth); },
     [](const auto& c) { return c.host.bandwidth; },
     [](auto& c, double f) { c.host.bandwidth *= f; }},
};

double factor_of(int ticks) { return std::exp2(ticks / kPerOctave); }

std::string preset_of(const Document& document) {
  if (!document.is_inline("cluster")) {
    const std::string name = document.get("cluster");
    return name.empty() ? "local" : name;
  }
  return document.get(std::string("cluster.") + kPreset);
}

}  // namespace

HardwarePanel::HardwarePanel(Session& session, QWidget* parent)
    : QGroupBox(tr("Hardware (only prices again)"), parent), session_(session) {
  auto* grid = new QGridLayout(this);
  grid->setVerticalSpacing(2);
  for (int knob = 0; knob < kKnobs; ++knob) {
    Row row{new QSlider(Qt::Horizontal), new QLabel};
    row.slider->setRange(-kTicks, kTicks);
    row.slider->setPageStep(static_cast<int>(kPerOctave));
    row.slider->setAccessibleName(tr("%1, from 1/8 to 8 times").arg(tr(kKnob[knob].name)));
    row.slider->setToolTip(tr("From 1/8 to 8 times the preset; Page Up doubles"));
    row.value->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    row.value->setMinimumWidth(row.value->fontMetrics().horizontalAdvance("9999.99 TFLOP/s"));
    grid->addWidget(new QLabel(tr(kKnob[knob].name)), knob, 0);
    grid->addWidget(row.slider, knob, 1);
    grid->addWidget(row.value, knob, 2);
    connect(row.slider, &QSlider::valueChanged, this, [this, knob] { commit(knob); });
    rows_.push_back(row);
  }
  auto* reset_button = new QPushButton(tr("Reset &hardware"));
  grid->addWidget(reset_button, kKnobs, 0, 1, 3);
  connect(reset_button, &QPushButton::clicked, this, &HardwarePanel::reset);
  connect(&session, &Session::study_changed, this, &HardwarePanel::show_cluster);
  show_cluster();
}

void HardwarePanel::commit(int knob) {
  if (updating_ || !session_.study()) return;
  const std::string preset = preset_of(session_.document());
  if (preset.empty()) return;
  try {
    sim::ClusterSpec cluster = load_cluster(preset);
    bool changed = false;
    for (int i = 0; i < kKnobs; ++i) {
      const int ticks = slider(i)->value();
      changed = changed || ticks != 0;
      if (ticks != 0) kKnob[i].scale(cluster, factor_of(ticks));
    }
    if (!changed) return reset();
    auto json = nlohmann::ordered_json::parse(sim::cluster_json(cluster));
    json["name"] = preset + " (edited)";
    json[kPreset] = preset;
    Document next = session_.document().with("cluster", json.dump());
    // Ranks follow the cluster's name; an edited one has none.
    if (next.get("run.ranks").empty()) {
      next = next.with("run.ranks", std::to_string(session_.study()->scenario.run.ranks));
    }
    session_.edit(std::move(next), tr("Hardware: %1").arg(tr(kKnob[knob].name)),
                  QString("hardware-%1").arg(knob));
  } catch (const Error& error) {
    setToolTip(error.what());
  }
}

void HardwarePanel::reset() {
  const std::string preset = preset_of(session_.document());
  if (!preset.empty() && session_.document().is_inline("cluster")) {
    session_.edit(session_.document().with("cluster", preset), tr("Reset hardware"));
  }
}

void HardwarePanel::show_cluster() {
  const auto study = session_.study();
  const std::string preset = preset_of(session_.document());
  setEnabled(study != nullptr && !preset.empty());
  if (!study || preset.empty()) return;
  updating_ = true;
  try {
    const sim::ClusterSpec base = load_cluster(preset);
    for (int i = 0; i < kKnobs; ++i) {
      Row& row = rows_[i];
      const double from = kKnob[i].get(base), now = kKnob[i].get(study->cluster);
      row.slider->setEnabled(from > 0);
      if (!row.slider->isSliderDown()) {
        row.slider->setValue(from > 0 && now > 0
                                 ? static_cast<int>(std::lround(std::log2(now / from) * kPerOctave))
                                 : 0);
      }
      row.value->setText(from > 0 ? kKnob[i].text(study->cluster) : tr("unknown"));
    }
  } catch (const Error&) {
    setEnabled(false);  // a cluster that does not load is reported by the study
  }
  updating_ = false;
}

}  // namespace zl::gui
