// Text for a terminal: aligned columns, wrapped lines.
#pragma once

#include <string>
#include <vector>

namespace topolet::integration {

/// The first row is the head. Columns are as wide as their widest cell, two spaces apart, every line indented by two.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

/// `head` and behind it the words of `text`, in lines of at most 110 columns; further lines begin below the first word.
std::string wrap(const std::string& head, const std::string& text);

}  // namespace topolet::integration
