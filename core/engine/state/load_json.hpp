// What was measured, as the database keeps it.
#pragma once

#include <string>

#include "core/load/load.hpp"

namespace topolet::engine {

/// Gives compact JSON, as in the column `load` of the table `load_sample`: what policies can see, and nothing that is
/// not known.
std::string to_json(const load::Load& load);

}  // namespace topolet::engine
