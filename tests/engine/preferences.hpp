// The preference of a pod for one of two nodes: some for the one, some for the other, some for neither.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/index_set.hpp"

namespace topolet::testing {

/// Returns the preferred node of a pod whose uid ends in a digit.
inline NodeSet preferred_node(const std::string& pod_uid) {
  const auto digit = pod_uid.empty() ? 0U : static_cast<std::uint32_t>(pod_uid.back() - '0');
  return digit % 3 == 2 ? NodeSet() : NodeSet{digit % 3};
}

}  // namespace topolet::testing
