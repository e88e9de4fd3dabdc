// Where zerolab keeps its files, after the XDG base directory specification.
// Ownership: values; nothing is created. Threads: reads the environment; safe while nobody sets it.
#pragma once

#include <filesystem>

namespace zl {

// $XDG_CONFIG_HOME/zerolab, else ~/.config/zerolab. As the specification asks, a relative XDG path
// is ignored. All four throw Error{failed} when there is no home folder either.
std::filesystem::path config_folder();
std::filesystem::path data_folder();   // $XDG_DATA_HOME, ~/.local/share
std::filesystem::path cache_folder();  // $XDG_CACHE_HOME, ~/.cache

// $ZEROLAB_DB, else results.db in the data folder.
std::filesystem::path database_path();

}  // namespace zl
