// Which CPUs each container may be using, as far as it follows from what it was told and what was read back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/base/index_set.hpp"
#include "core/engine/state/ledger.hpp"

namespace topolet::engine {

/// A CPU counts from the moment at which a set with it may have been sent until a later set without it was read back.
/// Kept apart from what the ledger says is being vacated, so that each can be checked against the other. Lives on the
/// loop's thread.
class Footprints {
 public:
  /// A set is sent, and may take effect at any time from now on.
  void add(const std::string& container_id, const CpuSet& cpus) { cpus_[container_id] |= cpus; }
  /// The container has these CPUs, and nothing that was sent to it is under way.
  void set(const std::string& container_id, const CpuSet& cpus) { cpus_[container_id] = cpus; }
  void forget(const std::string& container_id) { cpus_.erase(container_id); }
  /// Empty for a container of which nothing is known.
  CpuSet of(const std::string& container_id) const;

  /// Containers that may be using CPUs which the one of `key` is to have alone, though the ledger does not have them
  /// vacate these. There are none unless topolet has a fault.
  std::vector<placement::ContainerKey> unnoticed_on_cpus_of(const placement::ContainerKey& key,
                                                            const Ledger& ledger) const;

 private:
  std::map<std::string, CpuSet> cpus_;  ///< by container
};

}  // namespace topolet::engine
