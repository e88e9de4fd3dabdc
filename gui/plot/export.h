// A chart as a file: PNG, SVG, PDF, CSV or JSON, by the file's suffix.
// Ownership: none kept. Threads: GUI thread.
#pragma once

#include <QString>

namespace zl::gui {

class Plot;

// The file's name, with the suffix where it has none.
QString with_suffix(const QString& file, const QString& suffix);

// Throws Error{usage} for another suffix, Error{failed} when the file cannot be written.
void save_plot(Plot& plot, const QString& file);
// The same with a message box in place of the exception.
void export_plot(Plot& plot, const QString& file);

}  // namespace zl::gui
