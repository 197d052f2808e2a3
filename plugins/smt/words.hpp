// Words that several reasons share.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace topolet::smt {

inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

inline std::string name_of(const topolet_candidate& candidate) {
  const sdk::Set nodes(candidate.nodes);
  if (nodes.empty()) return "the CPUs without a node";
  return (nodes.size() == 1 ? "node " : "nodes ") + nodes.to_string();
}

inline std::string on_whole_cores(const topolet_candidate& candidate, std::size_t cpus) {
  return name_of(candidate) + (sdk::size_of(candidate.nodes) == 1 ? " has " : " have ") + counted(cpus, "CPU") +
         " on whole free cores";
}

inline std::string others_of_pod(std::size_t cpus) {
  return "the pod's other containers, which ask for " + std::to_string(cpus);
}

}  // namespace topolet::smt
