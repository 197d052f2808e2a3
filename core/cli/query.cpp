#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <fstream>
#include <iostream>

#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {
namespace {

namespace po = boost::program_options;

/// SQLite itself takes no longer statements.
constexpr std::size_t kLongestSql = 1'000'000;

constexpr const char* kUsage = "give one SQL statement: as an argument, in --file FILE, or - for standard input";

Result<std::string> read_all(std::istream& in, const std::string& name) {
  std::string text(kLongestSql + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (!in && !in.eof())) return Error{Code::kInvalidArgument, fmt::format("cannot read {}", name)};
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() <= kLongestSql) return text;
  return Error{Code::kInvalidArgument, fmt::format("{} is longer than an SQL statement may be", name)};
}

Result<std::string> sql_of(const Invocation& invocation) {
  if (invocation.has("file") == !invocation.arguments.empty()) return Error{Code::kInvalidArgument, kUsage};
  if (!invocation.has("file") && invocation.arguments[0] != "-") return invocation.arguments[0];
  if (!invocation.has("file")) return read_all(std::cin, "standard input");
  const std::string name = invocation.text("file");
  std::ifstream file(name);
  return read_all(file, name);
}

Error refusal(const Error& error) {
  if (error.code != Code::kPermissionDenied) return error;
  return {Code::kInvalidArgument, error.message +
                                      "; for everything else copy the database with `topolet backup FILE` "
                                      "and open the copy with sqlite3"};
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
  if (!statement) return refusal(statement.error());
  return (*database)->print("no rows", *statement);
}

}  // namespace topolet::cli
