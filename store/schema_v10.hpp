// Version 10 of the schema, from which every later one is made by the steps of migrations().
#pragma once

#include <string>

namespace topolet::store {

/// Makes all tables, triggers and views in a database that has none.
std::string schema_v10();

}  // namespace topolet::store
