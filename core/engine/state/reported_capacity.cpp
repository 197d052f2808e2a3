#include "core/engine/state/reported_capacity.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/escape.hpp"

namespace topolet::engine {

std::int64_t nominal_milli(const topology::Topology* topology, std::uint32_t node) {
  const topology::Node* found = topology == nullptr ? nullptr : topology->node(node);
  if (found == nullptr || found->memory_only) return 0;
  return static_cast<std::int64_t>(found->cpus.size()) * 1000;
}

bool is_measured(const ReportedCapacity& reported) { return reported.source == kMeasuredSource; }

bool is_low(std::int64_t milli, std::int64_t nominal) { return milli * 10 < nominal * 9; }

ReportedCapacity judged(ReportedCapacity reported, const std::optional<ReportedCapacity>& before, std::int64_t nominal,
                        std::chrono::milliseconds now) {
  const bool was_low = before && before->below_since.count() != 0;
  const bool low = is_low(reported.milli, nominal);
  reported.below_since = std::chrono::milliseconds(0);
  if (low) reported.below_since = was_low ? before->below_since : std::max(now, std::chrono::milliseconds(1));
  reported.lowers = low && was_low && before->lowers;
  return reported;
}

std::uint32_t missing_cpus(const ReportedCapacity& reported, std::int64_t nominal) {
  if (!reported.lowers || reported.milli >= nominal) return 0;
  return static_cast<std::uint32_t>((nominal - reported.milli + 500) / 1000);
}

std::string describe(const ReportedCapacity& reported, std::int64_t nominal) {
  if (is_measured(reported))
    return fmt::format("{} of {} milli-CPUs (measured: a hypervisor takes the rest)", reported.milli, nominal);
  return fmt::format("{} of {} milli-CPUs (told by {})", reported.milli, nominal, escaped(reported.source));
}

}  // namespace topolet::engine
