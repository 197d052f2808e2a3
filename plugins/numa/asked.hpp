// What a container asks of its nodes, and by which rules.
#pragma once

#include <topolet/policy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

#include "plugins/numa/policy.hpp"

namespace topolet::numa {

struct Asked {
  Alignment alignment = Alignment::kBestEffort;  ///< the option's, or the annotation's
  std::string bad_annotation;                    ///< why the container cannot be placed; empty: it can

  bool exclusive = false;
  std::size_t cpus = 0;         ///< exclusive ones
  std::int64_t milli = 0;       ///< of shared CPUs
  std::int64_t memory = 0;      ///< bytes
  HugePages huge_pages = {};    ///< bytes
  bool memory_bound = false;    ///< must have the memory on the nodes that it runs on
  std::size_t pod_cpus = 0;     ///< what the whole pod will want, if more; exclusive ones
  std::int64_t pod_milli = 0;   ///< the same of shared ones
  std::int64_t pod_memory = 0;  ///< bytes
  topolet_set pod_nodes = {};   ///< where the pod is; empty: nowhere yet, or that doesn't matter
  std::string note;             ///< goes with each reason

  /// Nothing that could be counted: it may run anywhere.
  bool nothing() const { return !exclusive && milli == 0 && memory == 0 && huge_pages.empty(); }
  /// Whether it may be denied for its alignment.
  bool deniable() const { return alignment >= Alignment::kRestricted && (exclusive || memory_bound); }
};

Asked asked_of(const topolet_request& request, const PolicyOptions& options);

/// The policy that counts for a container alone.
Alignment alignment_of(const topolet_workload& workload, const PolicyOptions& options);

}  // namespace topolet::numa
