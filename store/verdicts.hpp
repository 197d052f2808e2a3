#pragma once

#include <cstddef>
#include <string>

#include "store/store.hpp"

namespace topolet {

/// How many candidates a decision keeps, the winner included.
inline constexpr std::size_t kKeptCandidates = 8;

/// Writes the compact JSON of decided.verdicts; README.md beside this file gives its shape. Candidates beyond
/// kKeptCandidates are left out; bytes that are not UTF-8, as a plugin's reason may have, become U+FFFD.
std::string encode_verdicts(const VerdictsRow& verdicts);

}  // namespace topolet
