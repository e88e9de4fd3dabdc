// Starts the dashboard: command line, screenshots, and what can go wrong before the first window.
// Ownership: none. Threads: called once, by main().
#pragma once

namespace zl::gui {

// The exit code of the process: those of `zerolab`; 5 without a display or without fonts.
int launch(int argc, char** argv);

}  // namespace zl::gui
