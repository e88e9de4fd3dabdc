# Writes OUTPUT, a C++ file that holds the text of every catalogue file in FILES (separated by |).
string(REPLACE "|" ";" files "${FILES}")

# The longest string literal that every C++ compiler must take (C++20 Annex B).
set(longest 65536)

# literals(TEXT out): TEXT as string literals with commas between them, each of whole lines.
function(literals text out)
  set(list "")
  string(LENGTH "${text}" left)
  while(left GREATER_EQUAL longest)
    string(SUBSTRING "${text}" 0 ${longest} piece)
    string(FIND "${piece}" "\n" end REVERSE)
    string(SUBSTRING "${text}" 0 ${end} piece)
    string(SUBSTRING "${text}" ${end} -1 text)
    string(APPEND list "R\"zl_json(${piece})zl_json\",\n    ")
    string(LENGTH "${text}" left)
  endwhile()
  set(${out} "${list}R\"zl_json(${text})zl_json\"" PARENT_SCOPE)
endfunction()

set(rows "")
foreach(path IN LISTS files)
  file(READ "${path}" text)
  get_filename_component(folder "${path}" DIRECTORY)
  get_filename_component(folder "${folder}" NAME)
  get_filename_component(name "${path}" NAME_WLE)
  literals("${text}" pieces)
  string(APPEND rows "    {\"${folder}\", \"${name}\", joined({${pieces}})},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include <initializer_list>

#include \"scenarios/files/catalog_entry.h\"

namespace zl {
namespace {

std::string joined(std::initializer_list<std::string_view> pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text += piece;
  return text;
}

}  // namespace

const std::vector<CatalogEntry>& catalog_entries() {
  static const std::vector<CatalogEntry> entries = {
${rows}  };
  return entries;
}

}  // namespace zl
")
