// The mesh of one strategy of a document as a form has it: read, and changed on top of the strategy
// that it was made from, so that changing it back gives that strategy again.
// Ownership: values. Threads: pure functions.
#pragma once

#include <array>
#include <string>

#include "scenarios/planner/study.h"

namespace zl::gui {

// Keys of x-zerolab.parallel.
inline constexpr std::array kMeshKeys{"tensor",           "sequence_parallel", "tensor_overlap",
                                      "pipeline",         "schedule",          "virtual_stages",
                                      "layers_per_stage", "replicate"};
// What a strategy says to each, as typed; empty: nothing.
using MeshTexts = std::array<std::string, kMeshKeys.size()>;

// The entry of Document::strategies() that is called so; -1: none.
int entry_of(const Study& study, const Document& document, const std::string& strategy);

MeshTexts mesh_of_entry(const std::string& entry);

// The document with the entry's mesh like this. Throws Error{invalid} naming the key for a text
// that is no number.
Document with_mesh(const Study& study, const Document& document, int entry, const MeshTexts& texts);

// With one key of every strategy's mesh so, as `zerolab run --tensor 2`; strategies that the
// document leaves open are those of the study.
Document with_mesh_key(const Study& study, const Document& document, const std::string& key,
                       const std::string& text);

// What the entry is called.
std::string name_of_entry(const std::string& entry);

}  // namespace zl::gui
