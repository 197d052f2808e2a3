#include "core/engine/planning/besteffort_memory_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

namespace code = placement::reason_code;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

/// Rounded down, without overflow for any number of bytes.
std::int64_t percent_of(std::int64_t bytes, std::int64_t percent) {
  return bytes / 100 * percent + bytes % 100 * percent / 100;
}

/// It has none yet, or one that differs by a twentieth or more.
bool is_worth_telling(std::int64_t has, std::int64_t next) {
  return has <= 0 || std::max(has, next) - std::min(has, next) >= std::max<std::int64_t>(has / 20, 1);
}

}  // namespace

std::optional<std::int64_t> memory_of(const topology::Topology& machine) {
  std::int64_t bytes = 0;
  for (const topology::Node& node : machine.nodes) {
    if (node.has_memory && node.memory_bytes <= 0) return std::nullopt;
    bytes += node.memory_bytes;
  }
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

std::optional<event::BestEffortMemoryShared> BestEffortMemoryPlanner::next(std::optional<std::uint32_t> percent,
                                                                           bool may_step) const {
  if (auto back = lifted(!percent)) return back;
  return percent && may_step ? shared(*percent) : std::nullopt;
}

/// Also of one that is not BestEffort any more, or whose memory the kubelet bounds by now.
std::optional<event::BestEffortMemoryShared> BestEffortMemoryPlanner::lifted(bool of_all) const {
  event::BestEffortMemoryShared back{
      {}, "its memory is not bound any more to what is left over", code::kBestEffortMemoryFreed};
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (allocation.memory_high > 0 && allocation.is_managed() && (of_all || !allocation.shares_memory()))
      back.changes.push_back({key, kMemoryHighLifted});
  }
  return back.changes.empty() ? std::nullopt : std::optional(std::move(back));
}

std::optional<event::BestEffortMemoryShared> BestEffortMemoryPlanner::shared(std::uint32_t percent) const {
  const std::optional<std::int64_t> all = memory_of(*placer_.topology());
  std::vector<const Allocation*> sharing;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (allocation.shares_memory() && allocation.phase == Phase::kRunning) sharing.push_back(&allocation);
  }
  if (!all || sharing.empty()) return std::nullopt;
  const std::int64_t others = requested_by_others();
  const std::int64_t left = std::max<std::int64_t>(0, percent_of(*all, percent) - others);
  const std::int64_t part = std::max(left / static_cast<std::int64_t>(sharing.size()) / kMiB * kMiB, kLeastMemoryHigh);
  event::BestEffortMemoryShared next{
      {},
      fmt::format(
          "memory.high of each of {} BestEffort containers is {} MiB: {} % of the machine's {} MiB, less the {} "
          "MiB that others request, in equal parts",
          sharing.size(), part / kMiB, percent, *all / kMiB, others / kMiB),
      code::kBestEffortMemory};
  for (const Allocation* allocation : sharing) {
    if (is_worth_telling(allocation->memory_high, part)) next.changes.push_back({allocation->workload.key, part});
  }
  return next.changes.empty() ? std::nullopt : std::optional(std::move(next));
}

std::int64_t BestEffortMemoryPlanner::requested_by_others() const {
  std::int64_t bytes = 0;
  for (const auto& [key, allocation] : ledger_.allocations()) {
    if (allocation.is_kept() || allocation.workload.qos == placement::Qos::kBestEffort) continue;
    bytes += std::max<std::int64_t>(0, ledger_.booked_demand(key).memory_request_bytes);
  }
  return bytes;
}

}  // namespace topolet::engine
