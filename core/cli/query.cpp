#include "core/cli/command.hpp"
#include "core/cli/options.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {

void declare_query(Options& options) {
  declare_database(options);
  declare_format(options);
}

Status run_query(const Invocation& invocation) {
  const auto database = StateDatabase::open(invocation);
  if (!database) return database.error();
  auto statement = (*database)->connection().prepare(invocation.arguments[0], StateDatabase::kPurpose);
  if (!statement) return Error{Code::kInvalidArgument, statement.error().message};
  return (*database)->print("no rows", *statement);
}

}  // namespace topolet::cli
