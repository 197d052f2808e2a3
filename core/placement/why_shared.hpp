// The reason why a container shares CPUs, in words.
#pragma once

#include "core/placement/policy.hpp"

namespace topolet::placement {

struct WhyShared {
  const char* text;
  bool is_unexpected;  ///< whoever made the container may wonder why it has no CPUs of its own
};

/// Empty for a full node, of which the decision tells more.
WhyShared why_shared(NotExclusive why);

}  // namespace topolet::placement
