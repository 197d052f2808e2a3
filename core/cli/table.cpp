#include "core/cli/table.hpp"

#include <algorithm>
#include <cctype>

namespace topolet::cli {
namespace {

std::string cell_text(const nlohmann::ordered_json& cell) {
  std::string text = cell.is_string() ? cell.get<std::string>() : cell.is_null() ? std::string() : cell.dump();
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f) letter = ' ';
  }
  return text.empty() ? "-" : text;
}

/// Code points, which is what most terminals give one column each.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char letter) { return (letter & 0xc0) != 0x80; }));
}

std::string upper(std::string text) {
  for (char& letter : text) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace

std::string Table::format_text() const {
  std::vector<std::vector<std::string>> lines(1);
  for (const std::string& column : columns) lines[0].push_back(upper(column));
  for (const auto& row : rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const auto& cell : row) line.push_back(cell_text(cell));
  }
  std::vector<std::size_t> widths(columns.size());
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      text += line[i];
      if (i + 1 < line.size()) text += std::string(widths[i] - width_of(line[i]) + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

nlohmann::ordered_json Table::format_json() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& row : rows) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[columns[i]] = row[i];
    all.push_back(std::move(object));
  }
  return all;
}

std::string to_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace topolet::cli
