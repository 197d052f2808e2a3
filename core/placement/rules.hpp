// The operator's rules for placements.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace topolet {

enum class ExclusiveRule : std::uint8_t { kGuaranteedInteger, kNever };
enum class WhenFull : std::uint8_t { kDeny, kShare };

struct DecideRules {
  ExclusiveRule exclusive = ExclusiveRule::kGuaranteedInteger;
  WhenFull when_full = WhenFull::kDeny;
  std::uint32_t min_shared_cpus = 1;
  std::vector<std::string> reserved_namespaces = {"kube-system"};
};

}  // namespace topolet
