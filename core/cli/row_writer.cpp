#include "core/cli/row_writer.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace topolet::cli {
namespace {

constexpr std::size_t kRowsForWidths = 1000;
constexpr std::size_t kBytesForWidths = std::size_t{1} << 20;

/// An object must not have a key twice.
std::vector<std::string> json_keys(const std::vector<std::string>& columns) {
  std::map<std::string, int> seen;
  for (const std::string& column : columns) seen[column] = 0;
  std::vector<std::string> keys;
  for (const std::string& column : columns) {
    std::string key = column;
    if (seen[column]++ > 0) {
      for (int number = seen[column]; seen.count(key) != 0; ++number) key = fmt::format("{}:{}", column, number);
      seen[key] = 1;
    }
    keys.push_back(dump(key));
  }
  return keys;
}

class TableWriter final : public RowWriter {
 public:
  TableWriter(std::vector<std::string> columns, Output& output) : columns_(std::move(columns)), output_(output) {}

  Status write(const Row& row) override {
    if (layout_) return output_.write(layout_->line(row));
    for (const Cell& cell : row) held_bytes_ += cell.is_string() ? cell.get_ref<const std::string&>().size() : 0;
    held_.push_back(row);
    return held_.size() < kRowsForWidths && held_bytes_ < kBytesForWidths ? Status() : lay_out();
  }

  Status finish() override {
    if (!layout_) {
      if (Status written = lay_out(); !written) return written;
    }
    return output_.flush();
  }

 private:
  Status lay_out() {
    layout_.emplace(columns_, held_);
    Status written = output_.write(layout_->heading());
    for (const Row& row : held_) {
      if (written) written = output_.write(layout_->line(row));
    }
    held_ = {};
    return written;
  }

  std::vector<std::string> columns_;
  Output& output_;
  std::vector<Row> held_;  ///< until there is a layout
  std::size_t held_bytes_ = 0;
  std::optional<TableLayout> layout_;
};

/// Indented as to_text() does it.
class JsonWriter final : public RowWriter {
 public:
  JsonWriter(const std::vector<std::string>& columns, Output& output) : keys_(json_keys(columns)), output_(output) {}

  Status write(const Row& row) override {
    std::string text = std::exchange(is_first_, false) ? "[\n  {" : ",\n  {";
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += fmt::format("{}\n    {}: {}", i > 0 ? "," : "", keys_[i], dump(row[i]));
    }
    return output_.write(text + "\n  }");
  }

  Status finish() override {
    if (Status written = output_.write(is_first_ ? "[]\n" : "\n]\n"); !written) return written;
    return output_.flush();
  }

 private:
  std::vector<std::string> keys_;
  Output& output_;
  bool is_first_ = true;
};

class NdjsonWriter final : public RowWriter {
 public:
  NdjsonWriter(const std::vector<std::string>& columns, Output& output) : keys_(json_keys(columns)), output_(output) {}

  Status write(const Row& row) override {
    std::string text = "{";
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += fmt::format("{}{}:{}", i > 0 ? "," : "", keys_[i], dump(row[i]));
    }
    return output_.write(text + "}\n");
  }

  Status finish() override { return output_.flush(); }

 private:
  std::vector<std::string> keys_;
  Output& output_;
};

class CsvWriter final : public RowWriter {
 public:
  CsvWriter(std::vector<std::string> columns, Output& output) : columns_(std::move(columns)), output_(output) {}

  Status write(const Row& row) override {
    if (Status written = write_header(); !written) return written;
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += ',';
      if (!row[i].is_null()) line += row[i].is_string() ? field(row[i].get_ref<const std::string&>()) : row[i].dump();
    }
    return output_.write(line + "\r\n");
  }

  Status finish() override {
    if (Status written = write_header(); !written) return written;
    return output_.flush();
  }

 private:
  static std::string field(const std::string& text) {
    if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char letter : text) quoted.append(letter == '"' ? 2 : 1, letter);
    return quoted + '"';
  }

  Status write_header() {
    if (std::exchange(has_header_, true)) return {};
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) line += (i > 0 ? "," : "") + field(columns_[i]);
    return output_.write(line + "\r\n");
  }

  std::vector<std::string> columns_;
  Output& output_;
  bool has_header_ = false;
};

}  // namespace

std::unique_ptr<RowWriter> make_row_writer(Format format, std::vector<std::string> columns, Output& output) {
  switch (format) {
    case Format::kJson:
      return std::make_unique<JsonWriter>(columns, output);
    case Format::kNdjson:
      return std::make_unique<NdjsonWriter>(columns, output);
    case Format::kCsv:
      return std::make_unique<CsvWriter>(std::move(columns), output);
    case Format::kTable:
      break;
  }
  return std::make_unique<TableWriter>(std::move(columns), output);
}

}  // namespace topolet::cli
