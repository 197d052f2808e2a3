// The decision that somebody means who names a container.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.hpp"
#include "core/cli/state_database.hpp"

namespace topolet::cli {

struct FoundDecision {
  std::int64_t decision = 0;
  /// The UIDs of older pods that had a container of this name, the newest first.
  std::vector<std::string> older_uids = {};
};

/// The newest decision on the container that `name` fits, but for rows that only record what was seen of it, a drift or
/// an overlap, unless there are no others. `name` is CONTAINER, POD, POD/CONTAINER, NAMESPACE/POD,
/// NAMESPACE/POD/CONTAINER, or the beginning of a container id of at least three characters. Containers that hold
/// something now go before those that did, and names before ids. With a `uid`, only of the pod with that UID, and then
/// `name` may be empty. NOT_FOUND if there is none; INVALID_ARGUMENT lists the containers if there are several.
///
/// Every query follows one index of `decided` or `outcome` and reads a bounded number of rows, but for those on
/// `allocation`, which has a row for each container of the node.
Result<FoundDecision> find_decision(const StateDatabase& database, const std::string& name, const std::string& uid);

}  // namespace topolet::cli
