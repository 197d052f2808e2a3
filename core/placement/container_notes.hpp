// What policies note of a container for as long as it lives: the devices that it uses, and its tags.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/shared_string_map.hpp"
#include "core/placement/decision.hpp"
#include "core/placement/workload.hpp"

namespace topolet::placement {

/// Returns what begins the keys of all tags of a policy: "POLICY/".
std::string tag_prefix(const std::string& policy);

/// Returns `tags` with `set` in place of all that the policy had set before.
SharedStringMap with_tags(const SharedStringMap& tags, const std::string& policy,
                          const std::vector<std::pair<std::string, std::string>>& set);

/// Takes over what was noted in a decision; where nothing was, the workload keeps what it has.
void take_over_notes(const Decision& decision, Workload& workload);

}  // namespace topolet::placement
