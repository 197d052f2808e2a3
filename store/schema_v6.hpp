// Version 6 of the schema: the devices of the machine and of its containers.
#pragma once

#include <string>

namespace topolet::store {

/// The step from version 5.
std::string schema_v6();

}  // namespace topolet::store
