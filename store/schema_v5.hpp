// Version 5 of the schema: what the audit must know to be asked.
#pragma once

#include <string>

namespace topolet::store {

/// The step from version 4.
std::string schema_v5();
/// What a database gets besides if it has no decision: in one with a long history it would take the start too long.
std::string schema_v5_if_empty();

}  // namespace topolet::store
