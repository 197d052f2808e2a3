// A candidate in the numbers that matter to numa.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/numa/asked.hpp"
#include "plugins/numa/memory.hpp"

namespace topolet::numa {

/// A set in the kernel's list format, "0-3,8": sdk::Set::to_string() without its copies, for every candidate.
std::string list_of(topolet_set set);

struct Place {
  topolet_set nodes{};
  bool has_others = false;       ///< CPUs that no node covers
  std::size_t width = 0;         ///< nodes it spans; CPUs that no node covers count as one more
  std::size_t packages = 0;      ///< packages it spans
  std::size_t cpus = 0;          ///< allowed ones
  std::size_t free = 0;          ///< of those, in the pool
  std::int64_t milli_asked = 0;  ///< what shared containers ask of them already
  std::uint32_t distance = 0;
  Room memory = {};
  bool pages_fit = true;
  std::size_t outside_pod = 0;  ///< nodes that are none of the pod's
  bool cores_fit = true;        ///< whole free cores make up the exclusive CPUs, or they need not
  bool cores_could_fit = true;  ///< the same of all cores that are allowed; true where all cores are alike
  bool must_fit_cores = false;  ///< false: CPUs of different cores will do where nothing else is

  std::int64_t milli_free() const { return static_cast<std::int64_t>(free) * 1000 - milli_asked; }
  bool is_one_node() const { return width == 1 && !has_others; }
  /// "node 0", "nodes 0-1", "the CPUs without a node".
  std::string name() const;
};

/// One for each candidate. Memory is counted only if `memory` is given.
std::vector<Place> places_of(const topolet_request& request, const Asked& asked, const NodeMemory& memory);

}  // namespace topolet::numa
