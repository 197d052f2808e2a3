// The rows of `topology`, `config` and `setup`, which are written when the daemon begins and when something changes.
#pragma once

#include "core/base/result.hpp"
#include "store/database.hpp"
#include "store/store.hpp"

namespace topolet::store {

/// Nothing is written if the machine is as it was recorded last in this boot. To be run in a transaction.
Status add_topology(const Database& database, std::int64_t boot, const TopologyRow& row);
/// To be run in a transaction.
Status add_setup(const Database& database, std::int64_t boot, const SetupRow& row);

}  // namespace topolet::store
