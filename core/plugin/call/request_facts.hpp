// What a request says about itself in the ABI's numbers.
#pragma once

#include <topolet/abi.h>

#include <cstdint>

#include "core/placement/policy.hpp"

namespace topolet::plugin {

/// Returns a topolet_why_shared.
std::int32_t why_shared_of(const placement::PolicyRequest& request);
/// Returns its flags, TOPOLET_REQUEST_….
std::uint32_t flags_of(const placement::PolicyRequest& request);

}  // namespace topolet::plugin
