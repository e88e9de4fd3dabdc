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

// The chart under its title and what it is of: a picture is looked at without the window.
constexpr int kHeader = 52;

QSize with_header(const Plot& plot) { return plot.size() + QSize(0, kHeader); }

void paint_header(const Plot& plot, QPainter& painter) {
  const QRect area(12, 8, plot.width() - 24, kHeader - 12);
  painter.fillRect(QRect(0, 0, plot.width(), kHeader), plot.palette().base());
  QFont font = plot.font();
  font.setBold(true);
  painter.setFont(font);
  painter.setPen(plot.palette().text().color());
  painter.drawText(area, Qt::AlignTop | Qt::AlignLeft, plot.title());
  font.setBold(false);
  painter.setFont(font);
  const QFontMetrics metrics(font);
  painter.drawText(area, Qt::AlignBottom | Qt::AlignLeft,
                   metrics.elidedText(plot.context(), Qt::ElideMiddle, area.width()));
}

void paint(Plot& plot, QPaintDevice& device, double scale, const QString& file) {
  QPainter painter;
  if (!painter.begin(&device)) {
    throw Error(ErrorCode::failed,
                file.toStdString() + ": cannot be written; is the folder there?");
  }
  painter.scale(scale, scale);
  paint_header(plot, painter);
  painter.translate(0, kHeader);
  plot.render_into(painter, QRectF(QPointF(), QSizeF(plot.size())));
}

void save_picture(Plot& plot, const QString& file) {
  constexpr int kSharp = 2;
  QImage image(with_header(plot) * kSharp, QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(kSharp);
  paint(plot, image, 1, file);
  if (!image.save(file)) {
    throw Error(ErrorCode::failed, file.toStdString() + ": cannot be written as a picture");
  }
}

void save_svg(Plot& plot, const QString& file) {
  QSvgGenerator svg;
  svg.setFileName(file);
  svg.setSize(with_header(plot));
  svg.setViewBox(QRect(QPoint(), with_header(plot)));
  svg.setTitle(plot.title());
  svg.setDescription(plot.context());
  paint(plot, svg, 1, file);
}

void save_pdf(Plot& plot, const QString& file) {
  QPdfWriter pdf(file);
  pdf.setTitle(plot.title());
  pdf.setPageSize(QPageSize(QSizeF(with_header(plot)) * 0.75, QPageSize::Point, QString()));
  pdf.setPageMargins(QMarginsF());
  pdf.setResolution(96);
  paint(plot, pdf, 1, file);
}

}  // namespace

QString with_suffix(const QString& file, const QString& suffix) {
  return QFileInfo(file).suffix().isEmpty() ? file + suffix : file;
}

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
