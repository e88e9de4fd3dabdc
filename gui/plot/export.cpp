#include "gui/plot/export.h"

#include <QFileInfo>
#include <QMessageBox>
#include <QPainter>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>

#include "core/base/error.h"
#include "gui/plot/plot.h"

namespace zl::gui {
namespace {

void write(const QString& file, const QByteArray& bytes) {
  QSaveFile out(file);
  if (out.open(QIODevice::WriteOnly) && out.write(bytes) == bytes.size() && out.commit()) return;
  throw Error(ErrorCode::failed,
              file.toStdString() + ": cannot be written: " + out.errorString().toStdString());
}

void paint(Plot& plot, QPaintDevice& device, double scale, const QString& file) {
  QPainter painter;
  if (!painter.begin(&device)) {
    throw Error(ErrorCode::failed,
                file.toStdString() + ": cannot be written; is the folder there?");
  }
  painter.scale(scale, scale);
  plot.render_into(painter, QRectF(QPointF(), QSizeF(plot.size())));
}

void save_picture(Plot& plot, const QString& file) {
  constexpr int kSharp = 2;
  QImage image(plot.size() * kSharp, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(kSharp);
  paint(plot, image, 1, file);
  if (!image.save(file)) {
    throw Error(ErrorCode::failed, file.toStdString() + ": cannot be written as a picture");
  }
}

void save_svg(Plot& plot, const QString& file) {
  QSvgGenerator svg;
  svg.setFileName(file);
  svg.setSize(plot.size());
  svg.setViewBox(plot.rect());
  svg.setTitle(plot.title());
  paint(plot, svg, 1, file);
}

void save_pdf(Plot& plot, const QString& file) {
  QPdfWriter pdf(file);
  pdf.setTitle(plot.title());
  pdf.setPageSize(QPageSize(QSizeF(plot.size()) * 0.75, QPageSize::Point, QString()));
  pdf.setPageMargins(QMarginsF());
  pdf.setResolution(96);
  paint(plot, pdf, 1, file);
}

}  // namespace

void save_plot(Plot& plot, const QString& file) {
  const QString suffix = QFileInfo(file).suffix().toLower();
  if (suffix == "csv" || suffix == "json") {
    const Format format = suffix == "csv" ? Format::csv : Format::json;
    return write(file, QByteArray::fromStdString(render(plot.table(), format)));
  }
  if (suffix == "png") return save_picture(plot, file);
  if (suffix == "svg") return save_svg(plot, file);
  if (suffix == "pdf") return save_pdf(plot, file);
  throw Error(ErrorCode::usage,
              file.toStdString() + ": the suffix is none of png, svg, pdf, csv, json");
}

void export_plot(Plot& plot, const QString& file) {
  try {
    save_plot(plot, file);
  } catch (const Error& error) {
    QMessageBox::warning(&plot, QObject::tr("Not exported"), error.what());
  }
}

}  // namespace zl::gui
