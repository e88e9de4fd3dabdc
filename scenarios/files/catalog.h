// The catalogue of models, clusters, strategies and studies that is compiled into the program.
// Ownership: the texts live as long as the program. Threads: immutable, free to read from any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zl {

// Names in one folder (models, clusters, software, strategies, studies), sorted by name.
std::vector<std::string> catalog_names(std::string_view folder);

// The stable name behind an alias: "ddp" -> "zero-0"; behind the one name that differs in case and
// punctuation alone: "Llama-3-8B" -> "llama3-8b"; any other name is returned as it is.
std::string catalog_canonical_name(std::string_view folder, std::string_view name);

// "8xH100" -> "8xh100": likewise of a cluster, with its count.
std::string canonical_cluster(const std::string& name);

// As it is written, or an alias: files of people win over names that are only alike.
bool catalog_has(std::string_view folder, std::string_view name);

// The JSON text of an entry, aliases followed. Throws Error{invalid} with the nearest name and the
// list of names; strategies that arrive in a later version are named as such.
std::string_view catalog_text(std::string_view folder, std::string_view name);

}  // namespace zl
