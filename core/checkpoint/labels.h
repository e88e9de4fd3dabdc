// What a file of a checkpoint says of itself: step, rank, and the run that it belongs to, by name.
// Ownership: values. Threads: free to use from any.
#pragma once

#include <map>
#include <string>

#include "core/checkpoint/safetensors.h"

namespace zl {

using Labels = std::map<std::string, std::string>;

// Labels that tell something, but that no file is recognised by: what program wrote it, where the
// ranks kept what they moved to files (what ends so), and, in a manifest, what the file of a rank
// is: see text_of; and the best that the run was judged so far.
inline constexpr const char* kProgram = "program";
inline constexpr const char* kFilesFolder = "/nvme_path";
inline constexpr const char* kBest = "best evaluation";
std::string file_label(int rank);

// "120 bytes, crc32c 01234567".
std::string text_of(const WrittenFile& file);

// "its step is 4, not 6": why a file with the labels `found` is not the one that is wanted; empty:
// it is.
std::string difference(const Labels& found, const Labels& wanted);

// A file of a checkpoint, as it was written and with the wanted labels. Throws Error{invalid}
// naming the file and what is wrong with it, be it that it has no checksum.
SafetensorsFile read_labelled(const std::string& path, const Labels& wanted);

}  // namespace zl
