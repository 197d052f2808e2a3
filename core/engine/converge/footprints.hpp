// The CPUs that each container may be using, as far as they follow from what it was told and what was read back.
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
  void add(const std::string& container_id, const CpuSet& cpus);
  /// A set may have been sent before this daemon started.
  void assume(const std::string& container_id, const CpuSet& cpus) { cpus_[container_id] |= cpus; }
  /// The container has these CPUs, and nothing that was sent to it is under way.
  void set(const std::string& container_id, const CpuSet& cpus) { cpus_[container_id] = told_[container_id] = cpus; }
  void forget(const std::string& container_id);
  /// Empty for a container of which nothing is known.
  CpuSet of(const std::string& container_id) const { return find(cpus_, container_id); }
  /// The part of `of` that it surely was told, or was seen on.
  CpuSet told(const std::string& container_id) const { return find(told_, container_id); }

  /// Containers that may be using CPUs which the one of `key` is to have alone, though the ledger does not have them
  /// vacate these. There are none unless topolet has a fault.
  std::vector<placement::ContainerKey> unnoticed_on_cpus_of(const placement::ContainerKey& key,
                                                            const Ledger& ledger) const;

 private:
  using ByContainer = std::map<std::string, CpuSet>;

  static CpuSet find(const ByContainer& sets, const std::string& container_id);

  ByContainer cpus_;
  ByContainer told_;
};

}  // namespace topolet::engine
