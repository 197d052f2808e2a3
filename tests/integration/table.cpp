#include "tests/integration/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace topolet::integration {

std::string format_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("  {:<{}}", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + '\n';
  }
  return table;
}

std::string wrap(const std::string& head, const std::string& text) {
  constexpr std::size_t kColumns = 110;
  std::istringstream words(text);
  std::string wrapped;
  std::string line = head;
  for (std::string word; words >> word;) {
    if (line.size() + word.size() > kColumns) {
      wrapped += line.substr(0, line.size() - 1) + '\n';
      line = std::string(head.size(), ' ');
    }
    line += word + ' ';
  }
  return wrapped + line.substr(0, line.size() - 1) + '\n';
}

}  // namespace topolet::integration
