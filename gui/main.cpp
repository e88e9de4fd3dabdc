// zerolab-gui: the dashboard.
#include "core/threads/openmp_spin.h"
#include "gui/launch.h"

int main(int argc, char** argv) {
  zl::limit_openmp_spin(argv);
  return zl::gui::launch(argc, argv);
}
