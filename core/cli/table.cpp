#include "core/cli/table.hpp"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "core/base/escape.hpp"

namespace topolet::cli {
namespace {

std::string cell_text(const Cell& cell) {
  const std::string text = cell.is_string() ? escaped(cell.get_ref<const std::string&>())
                           : cell.is_null() ? std::string()
                                            : dump(cell);
  return text.empty() ? "-" : text;
}

std::vector<std::string> texts_of(const Row& row) {
  std::vector<std::string> texts;
  for (const Cell& cell : row) texts.push_back(cell_text(cell));
  return texts;
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

void widen(std::vector<std::size_t>& widths, const std::vector<std::string>& texts) {
  for (std::size_t i = 0; i < texts.size(); ++i) widths[i] = std::max(widths[i], width_of(texts[i]));
}

}  // namespace

TableLayout::TableLayout(const std::vector<std::string>& columns, const std::vector<Row>& rows)
    : widths_(columns.size()) {
  for (const std::string& column : columns) heading_.push_back(escaped(upper(column)));
  widen(widths_, heading_);
  for (const Row& row : rows) widen(widths_, texts_of(row));
}

std::string TableLayout::heading() const { return aligned(heading_); }

std::string TableLayout::line(const Row& row) const { return aligned(texts_of(row)); }

std::string TableLayout::aligned(const std::vector<std::string>& texts) const {
  std::string line;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    line += texts[i];
    if (i + 1 == texts.size()) break;
    line.append(widths_[i] - std::min(widths_[i], width_of(texts[i])) + 2, ' ');
  }
  return line + '\n';
}

std::string Table::format_text() const {
  const TableLayout layout(columns, rows);
  std::string text = layout.heading();
  for (const Row& row : rows) text += layout.line(row);
  return text;
}

nlohmann::ordered_json Table::format_json() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < row.size(); ++i) object[columns[i]] = row[i];
    all.push_back(std::move(object));
  }
  return all;
}

std::string dump(const nlohmann::ordered_json& json, int indent) {
  return escaped_json(json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string to_text(const nlohmann::ordered_json& json) { return dump(json, 2) + '\n'; }

}  // namespace topolet::cli
