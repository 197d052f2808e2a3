// What the sections of quality have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/bench/quality_sections.hpp"

namespace topolet::bench {

/// Named only where there are any, as there should be none.
inline constexpr const char* kLostVotes = "lost votes";
/// Broken promises, as moves::MoveJudge finds them.
inline constexpr const char* kFaults = "faults";

double share(double part, std::uint64_t whole);
Figure count(const char* name, std::uint32_t value);
void append(Figures& figures, const Figures& more);

/// The figures of every section about the pods that it counts.
struct Counts {
  std::uint32_t counted = 0;
  std::uint32_t denied = 0;
  std::uint32_t lost_votes = 0;
  std::uint32_t in_node = 0;

  void add(const Admission& admission, const topology::Topology& topology);
  Figures figures() const;
};

/// Returns true if one of the groups has them all.
bool is_inside_one(const CpuSet& cpus, const std::vector<CpuSet>& groups);

Churn churn_on(const QualityMachine& machine, const Scene& scene, std::uint64_t seed);

}  // namespace topolet::bench
