#include "core/engine/state/told_capacity.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/escape.hpp"

namespace topolet::engine {

std::int64_t nominal_milli(const topology::Topology* topology, std::uint32_t node) {
  const topology::Node* found = topology == nullptr ? nullptr : topology->node(node);
  if (found == nullptr || found->memory_only) return 0;
  return static_cast<std::int64_t>(found->cpus.size()) * 1000;
}

bool is_low(std::int64_t milli, std::int64_t nominal) { return milli * 10 < nominal * 9; }

ToldCapacity judged(ToldCapacity told, const std::optional<ToldCapacity>& before, std::int64_t nominal,
                    std::chrono::milliseconds now) {
  const bool was_low = before && before->below_since.count() != 0;
  const bool low = is_low(told.milli, nominal);
  told.below_since = std::chrono::milliseconds(0);
  if (low) told.below_since = was_low ? before->below_since : std::max(now, std::chrono::milliseconds(1));
  told.lowers = low && was_low && before->lowers;
  return told;
}

std::uint32_t missing_cpus(const ToldCapacity& told, std::int64_t nominal) {
  if (!told.lowers || told.milli >= nominal) return 0;
  return static_cast<std::uint32_t>((nominal - told.milli + 500) / 1000);
}

std::string describe(const ToldCapacity& told, std::int64_t nominal) {
  return fmt::format("{} of {} milli-CPUs (told by {})", told.milli, nominal, escaped(told.source));
}

}  // namespace topolet::engine
