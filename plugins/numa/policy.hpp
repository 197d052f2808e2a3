// Keeps a container's exclusive CPUs in as few and as close NUMA nodes as can hold them.
#pragma once

#include <topolet/policy.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace topolet::numa {

enum class Strategy : std::uint8_t {
  kPacked,  ///< of equal node sets the fullest that still fits, so that whole nodes stay free
  kSpread,  ///< the emptiest, so that containers share memory bandwidth with few others
};

struct PolicyOptions {
  Strategy strategy = Strategy::kPacked;
};

struct Verdict {
  bool reject = false;
  std::int32_t score = 0;  ///< −100…100; unless rejected
  std::string reason;
};

struct CpuOrder {
  std::vector<std::uint32_t> cpus;  ///< all usable CPUs, by OS index, the ones to take first
  std::string reason;
};

/// Immutable, so safe from any thread. It has an opinion on exclusive workloads only: the others run in the pool.
class Policy {
 public:
  explicit Policy(PolicyOptions options) : options_(options) {}

  /// One verdict per candidate; none at all for a workload that is not exclusive.
  /// The narrowest width that could hold the demand if nobody else ran there gets 100; each node more costs 30, farther
  /// nodes of the same width 11–19, and what the strategy prefers of equals makes up to 10.
  std::vector<Verdict> score(const topolet_request& request) const;

  /// Which CPUs to take first: whole free cores, those of one L3 cache together; what is left of the request comes from
  /// cores that are already in use, if they have it. Empty for a workload that is not exclusive.
  CpuOrder pick(const topolet_pick_request& request) const;

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;

 private:
  PolicyOptions options_;
};

}  // namespace topolet::numa
