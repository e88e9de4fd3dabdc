// zerolab-gui: the dashboard.
#include "gui/launch.h"

int main(int argc, char** argv) { return zl::gui::launch(argc, argv); }
