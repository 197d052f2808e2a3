// The files of the page, which are part of the program.
#pragma once

#include <string_view>

namespace topolet::agent {

struct PageFile {
  std::string_view path;  ///< as a browser asks for it: "/page.js"
  std::string_view content_type;
  std::string_view content;
};

/// Null if there is none.
const PageFile* find_page_file(std::string_view path);

}  // namespace topolet::agent
