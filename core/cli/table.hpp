// Rows and columns, shown to people or to programs.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace topolet::cli {

/// Null, a number or a text.
using Cell = nlohmann::ordered_json;
using Row = std::vector<Cell>;

/// A table that fits into memory. row_writer.hpp is for rows of any number.
struct Table {
  std::vector<std::string> columns;
  std::vector<Row> rows;

  /// Formats it as aligned text, with a heading and a line for each row, escaped; '-' for empty cells.
  std::string format_text() const;
  /// An array with an object for each row.
  nlohmann::ordered_json format_json() const;
};

/// The lines of a table for people. Columns are as wide as the heading and `rows` need; a line of another row with a
/// longer text in it is longer.
class TableLayout {
 public:
  TableLayout(const std::vector<std::string>& columns, const std::vector<Row>& rows);

  std::string heading() const;
  std::string line(const Row& row) const;

 private:
  std::string aligned(const std::vector<std::string>& texts) const;

  std::vector<std::string> heading_;
  std::vector<std::size_t> widths_;
};

/// Returns JSON in one line, as it is written to stdout; with an indent, in several. Bytes that are not UTF-8 are
/// replaced, and characters that a terminal would obey are written as \uXXXX.
std::string dump(const nlohmann::ordered_json& json, int indent = -1);
/// The same with an indent of 2, and an end of line.
std::string to_text(const nlohmann::ordered_json& json);

}  // namespace topolet::cli
