// Rows and columns, shown to people or to programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace topolet::cli {

/// A cell is null, a number or a text.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<nlohmann::ordered_json>> rows;

  /// Aligned, a heading and a line for each row; '-' for what is empty, control characters as spaces.
  std::string format_text() const;
  /// An array with an object for each row.
  nlohmann::ordered_json format_json() const;
};

/// JSON as it is written to stdout. What is no UTF-8 is replaced.
std::string to_text(const nlohmann::ordered_json& json);

}  // namespace topolet::cli
