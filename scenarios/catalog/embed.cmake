# Writes OUTPUT, a C++ file that holds the text of every catalogue file in FILES (separated by |).
string(REPLACE "|" ";" files "${FILES}")
set(rows "")
foreach(path IN LISTS files)
  file(READ "${path}" text)
  get_filename_component(folder "${path}" DIRECTORY)
  get_filename_component(folder "${folder}" NAME)
  get_filename_component(name "${path}" NAME_WLE)
  string(APPEND rows "    {\"${folder}\", \"${name}\", R\"zl_json(${text})zl_json\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"scenarios/files/catalog_entry.h\"

namespace zl {

const std::vector<CatalogEntry>& catalog_entries() {
  static const std::vector<CatalogEntry> entries = {
${rows}  };
  return entries;
}

}  // namespace zl
")
