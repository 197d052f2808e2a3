// Places containers on as few NUMA nodes as possible, as close to each other as possible, by the rules of the kubelet's
// Topology Manager.
#pragma once

#include <topolet/policy.hpp>

#include <array>
#include <utility>
#include <vector>

#include "plugins/numa/answers.hpp"
#include "plugins/numa/options.hpp"

namespace topolet::numa {

/// Immutable, so any thread may call it.
class Policy {
 public:
  explicit Policy(PolicyOptions options) : options_(std::move(options)) {}

  static constexpr std::array<topolet_str, 1> kAnnotations = {{sdk::borrow(kPolicyAnnotation)}};

  /// One verdict per candidate; none at all for a container that requests nothing, or for a shared one under policy
  /// none. Candidates with as few nodes as could hold the demand on an empty machine get 100. Each further node costs
  /// 30, nodes without memory and greater distance between as many nodes 14–16, more caches for exclusive CPUs and
  /// cores that others use 5–9, and the strategy's preference among equals up to 4; where it makes a difference to the
  /// container's pod, that costs 7–8, and these less. A candidate where the container can run but lacks something gets
  /// −60 or less. Where a scheduler has chosen nodes, and these have room, candidates outside them get 100 less, and no
  /// less than −50 where they lack nothing.
  std::vector<Verdict> score(const topolet_request& request) const;

  /// Returns the order in which to take CPUs: under policy none, and with one of the options that order CPUs, the
  /// kubelet's; otherwise whole nodes, then whole cores, those of one cache together, then threads of partly used
  /// cores. Empty for a container without exclusive CPUs.
  CpuOrder pick(const topolet_pick_request& request) const;

  /// The memory nodes to bind a container to, if it has a memory limit and memory = bind.
  MemoryBinding adjust(const topolet_adjust_request& request) const;

  /// The nodes that a scheduler has chosen, if they are more than one; else none.
  sdk::Set propose(const topolet_request& request) const;

  /// Containers run beside their homes by what is measured.
  topolet_reads reads() const { return {sizeof(topolet_reads), options_.soft_homes ? TOPOLET_READS_LOAD : 0, {}, {}}; }

  void score(const topolet_request& request, sdk::Scores& scores) const;
  void propose(const topolet_request& request, sdk::Proposals& proposals) const;
  void pick(const topolet_pick_request& request, sdk::Picks& picks) const;
  void adjust(const topolet_adjust_request& request, sdk::Adjustments& adjustments) const;

 private:
  CpuOrder check_chosen(const topolet_pick_request& picking) const;

  PolicyOptions options_;
};

}  // namespace topolet::numa
