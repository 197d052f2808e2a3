// Sets of CPUs, looked at core by core.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <vector>

namespace topolet::smt {

/// Returns true if any core has more than one thread.
bool has_siblings(const sdk::CoreMap& map);
/// The siblings of `cpus`, without `cpus` themselves.
sdk::Set siblings_of(const sdk::CoreMap& map, topolet_set cpus);
/// The cores that `cpus` are on, each once, in the order of the lowest of `cpus` on them.
std::vector<std::uint32_t> cores_of(const sdk::CoreMap& map, const sdk::Set& cpus);
/// Returns the `cpus` that are on one of `cores`.
sdk::Set on_cores(const sdk::CoreMap& map, const std::vector<std::uint32_t>& cores, const sdk::Set& cpus);

}  // namespace topolet::smt
