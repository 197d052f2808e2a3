// Text in aligned columns.
#pragma once

#include <string>
#include <vector>

namespace topolet::integration {

/// The first row is the head. Columns are as wide as their widest cell, two spaces apart, every line indented by two.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace topolet::integration
