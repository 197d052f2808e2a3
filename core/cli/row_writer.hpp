// Rows on their way to stdout, one after the other and in bounded memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"

namespace topolet::cli {

enum class Format : std::uint8_t {
  kTable,   ///< for people: aligned, with a heading
  kJson,    ///< an array with an object for each row
  kNdjson,  ///< a line with an object for each row
  kCsv,     ///< RFC 4180, the names of the columns first
};

/// Writes one table. write() once for each row, then finish(), if all of the rows could be had.
class RowWriter {
 public:
  virtual ~RowWriter() = default;

  virtual Status write(const Row& row) = 0;
  /// Writes what is left, of a table without rows too, and flushes the output.
  virtual Status finish() = 0;
};

/// `output` must outlive the writer. As a table, the first 1000 rows say how wide the columns are, or fewer if they are
/// more than a mebibyte of text. As JSON, a column whose name another has too is called "name:2". In CSV an empty text
/// is "" and NULL is nothing; texts are as they are, control characters too.
std::unique_ptr<RowWriter> make_row_writer(Format format, std::vector<std::string> columns, Output& output);

}  // namespace topolet::cli
