// Pieces of text that several reasons share.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <string>

namespace topolet::smt {

/// "node 0 has 2 CPUs on free whole cores".
inline std::string free_whole_cores(const topolet_candidate& candidate, std::size_t cpus) {
  return sdk::node_names(candidate.nodes) + (sdk::size_of(candidate.nodes) == 1 ? " has " : " have ") +
         sdk::counted(cpus, "CPU") + " on free whole cores";
}

/// "the pod's other containers, which request 5".
inline std::string other_containers_of_pod(std::size_t cpus) {
  return "the pod's other containers, which request " + std::to_string(cpus);
}

}  // namespace topolet::smt
