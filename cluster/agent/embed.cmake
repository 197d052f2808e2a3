# Makes a source of the page's files. Usage: cmake -D FILES=a;b -D OUT=page_files.cpp -P embed.cmake
set(types html text/html js text/javascript css text/css svg image/svg+xml)
set(arrays "")
set(table "")
set(number 0)
foreach(file ${FILES})
  get_filename_component(name ${file} NAME)
  get_filename_component(extension ${file} LAST_EXT)
  string(SUBSTRING ${extension} 1 -1 extension)
  list(FIND types ${extension} position)
  math(EXPR position "${position} + 1")
  list(GET types ${position} type)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  set(view "std::string_view(kFile${number}, sizeof(kFile${number}))")
  string(APPEND table "    {\"/${name}\", \"${type}\", ${view}},\n")
  if(name STREQUAL "index.html")
    string(APPEND table "    {\"/\", \"${type}\", ${view}},\n")
  endif()
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUT} "#include \"cluster/agent/page_files.hpp\"

namespace topolet::agent {
namespace {

${arrays}
constexpr PageFile kFiles[] = {
${table}};

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : kFiles) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

}  // namespace topolet::agent
")
