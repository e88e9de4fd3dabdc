// What the loader is told about an executable: where it looks for libraries, and how it is
// hardened. Ownership: values. Threads: pure functions.
#pragma once

#include <elf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace zl::elf {

struct Hardening {
  bool position_independent = false;
  bool binds_now = false;              // all functions are looked up at the start ...
  bool read_only_relocations = false;  // ... so that their table can become read-only
  bool executable_stack = true;
  std::vector<std::string> search_path;  // the entries of RUNPATH and RPATH
};

template <class Header>
Header at(const std::string& bytes, std::size_t offset) {
  Header header{};
  if (offset + sizeof header <= bytes.size()) {
    std::memcpy(&header, bytes.data() + offset, sizeof header);
  } else {
    ADD_FAILURE() << "no whole ELF file";
  }
  return header;
}

// "a::b" is "a", "" and "b".
inline void add_entries(const std::string& list, std::vector<std::string>& entries) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    entries.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
}

inline void read_dynamic(const std::string& bytes, const Elf64_Phdr& segment,
                         const std::vector<Elf64_Phdr>& segments, Hardening& found) {
  std::vector<Elf64_Dyn> entries;
  for (std::size_t i = 0; i < segment.p_filesz / sizeof(Elf64_Dyn); ++i) {
    entries.push_back(at<Elf64_Dyn>(bytes, segment.p_offset + i * sizeof(Elf64_Dyn)));
  }
  std::size_t strings = 0;  // in the file
  for (const Elf64_Dyn& entry : entries) {
    for (const Elf64_Phdr& load : segments) {
      const bool inside = load.p_type == PT_LOAD && entry.d_un.d_ptr >= load.p_vaddr &&
                          entry.d_un.d_ptr < load.p_vaddr + load.p_filesz;
      if (entry.d_tag == DT_STRTAB && inside) {
        strings = entry.d_un.d_ptr - load.p_vaddr + load.p_offset;
      }
    }
  }
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH) {
      add_entries(bytes.c_str() + strings + entry.d_un.d_val, found.search_path);
    }
    if (entry.d_tag == DT_FLAGS_1) {
      found.binds_now = (entry.d_un.d_val & DF_1_NOW) != 0;
      found.position_independent = (entry.d_un.d_val & DF_1_PIE) != 0;
    }
  }
}

inline Hardening read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto header = at<Elf64_Ehdr>(bytes, 0);
  EXPECT_EQ(std::memcmp(header.e_ident, ELFMAG, SELFMAG), 0) << path << " is no ELF file";
  std::vector<Elf64_Phdr> segments;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    segments.push_back(at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr)));
  }
  Hardening found;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_DYNAMIC) read_dynamic(bytes, segment, segments, found);
    if (segment.p_type == PT_GNU_RELRO) found.read_only_relocations = true;
    if (segment.p_type == PT_GNU_STACK) found.executable_stack = (segment.p_flags & PF_X) != 0;
  }
  return found;
}

// An empty or relative entry is the working directory, whose files may be anybody's.
inline void expect_hardened(const std::string& path) {
  const Hardening found = read(path);
  for (const std::string& entry : found.search_path) {
    EXPECT_TRUE(entry.starts_with("/") || entry.starts_with("$ORIGIN"))
        << path << " looks for libraries in \"" << entry << "\"";
  }
  EXPECT_TRUE(found.position_independent) << path;
  EXPECT_TRUE(found.binds_now) << path;
  EXPECT_TRUE(found.read_only_relocations) << path;
  EXPECT_FALSE(found.executable_stack) << path;
}

}  // namespace zl::elf
