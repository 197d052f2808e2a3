// The policy's answers: verdicts, which CPUs to take, and which memory nodes.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace topolet::numa {

using sdk::Verdict;

struct CpuOrder {
  std::vector<std::uint32_t> cpus;  ///< by OS index, in the order in which to take them
  std::string reason;
  sdk::Set narrow = {};        ///< take CPUs of this set only; empty for no restriction
  std::string rejection = {};  ///< why the chosen CPUs must not be used; empty if they may
  sdk::Set withhold = {};      ///< kept idle beside the chosen CPUs
  sdk::Set wanted = {};        ///< take as many CPUs of this set as there are; empty for none in particular
};

struct MemoryBinding {
  std::optional<sdk::Set> nodes;  ///< nothing if the memory is not bound
  std::string reason;
};

}  // namespace topolet::numa
