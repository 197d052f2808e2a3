#include <fmt/format.h>

#include <array>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/suggestion.hpp"
#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

/// SQLite itself takes no longer statements.
constexpr std::size_t kLongestSql = 1'000'000;

constexpr const char* kQueryUsage = "give one SQL statement: as an argument, in --file FILE, or - for standard input";

Result<std::string> read_all(std::istream& in, const std::string& name) {
  std::string text(kLongestSql + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (!in && !in.eof())) return Error{Code::kInvalidArgument, fmt::format("cannot read {}", name)};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() <= kLongestSql) return text;
  return Error{Code::kInvalidArgument, fmt::format("{} is longer than an SQL statement may be", name)};
}

Result<std::string> sql_of(const Invocation& invocation) {
  if (invocation.has("file") == !invocation.arguments.empty()) return Error{Code::kInvalidArgument, kQueryUsage};
  if (!invocation.has("file") && invocation.arguments[0] != "-") return invocation.arguments[0];
  if (!invocation.has("file")) return read_all(std::cin, "standard input");
  const std::string name = invocation.text("file");
  std::ifstream file(name);
  if (!file) return Error{Code::kInvalidArgument, fmt::format("cannot read {}: {}", name, std::strerror(errno))};
  return read_all(file, name);
}

Error refusal(const Error& error) {
  if (error.code != Code::kPermissionDenied) return error;
  return {Code::kInvalidArgument, error.message +
                                      "; for everything else copy the database with `topolet backup FILE` "
                                      "and open the copy with sqlite3"};
}

/// SQLite's words for a name that it does not know, with the one that may have been meant.
Error with_near_name(const StateDatabase& database, const Error& error) {
  struct Kind {
    std::string_view complaint;
    const char* names;
  };
  constexpr std::array<Kind, 2> kKinds = {
      {{"no such column: ",
        "SELECT DISTINCT c.name FROM pragma_table_list t JOIN pragma_table_xinfo(t.name) c WHERE t.schema = 'main'"},
       {"no such table: ", "SELECT name FROM pragma_table_list WHERE schema = 'main'"}}};
  for (const Kind& kind : kKinds) {
    const auto begin = error.message.find(kind.complaint);
    if (begin == std::string::npos) continue;
    std::string name = error.message.substr(begin + kind.complaint.size());
    name.resize(name.rfind(" (SQLite"));
    const auto rows = database.table(kind.names);
    if (!rows) return error;
    std::vector<std::string> known;
    for (const Row& row : rows->rows) known.push_back(row[0].get<std::string>());
    return {error.code, error.message + suggestion(name.substr(name.rfind('.') + 1), known)};
  }
  return error;
}

}  // namespace

void declare_query(Options& options) {
  declare_database(options);
  declare_format(options);
  options.add_options()("file", po::value<std::string>()->value_name("FILE"), "A file with the SQL.");
}

Status run_query(const Invocation& invocation) {
  const auto sql = sql_of(invocation);
  if (!sql) return sql.error();
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  auto statement = (*database)->connection().prepare_reading(*sql, StateDatabase::kPurpose);
  if (!statement) return with_near_name(**database, refusal(statement.error()));
  return (*database)->print("no rows", *statement);
}

}  // namespace topolet::cli
