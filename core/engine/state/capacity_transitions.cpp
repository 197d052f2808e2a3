#include "core/engine/state/capacity_transitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/escape.hpp"
#include "core/base/rfc3339.hpp"
#include "core/base/text.hpp"

namespace topolet::engine {

void CapacityTransitions::tell(const event::CapacityReported& event) {
  const auto known = ledger_.reported_capacities().find(event.node);
  const std::optional<ReportedCapacity> before =
      known == ledger_.reported_capacities().end() ? std::nullopt : std::optional(known->second);
  const std::int64_t nominal = nominal_milli(ledger_.topology().get(), event.node);
  const ReportedCapacity after = judged({event.node, event.milli, event.until, event.source}, before, nominal, now_);
  if (before == after) return;
  draft_.put_capacity(after);
  // A later end alone is not recorded.
  if (before && before->milli == after.milli && before->source == after.source) return;
  record(event.node, fmt::format("node {}: {} until {}", event.node, describe(after, nominal), rfc3339(after.until)));
}

void CapacityTransitions::clear(const event::CapacityCleared& event) {
  const auto known = ledger_.reported_capacities().find(event.node);
  if (known == ledger_.reported_capacities().end()) return;
  draft_.forget_capacity(event.node);
  const std::int64_t nominal = nominal_milli(ledger_.topology().get(), event.node);
  record(event.node, fmt::format("node {}: {} was cleared by {}; its nominal capacity counts again", event.node,
                                 describe(known->second, nominal), escaped(event.source)));
}

void CapacityTransitions::pass_time() {
  for (const auto& [node, reported] : ledger_.reported_capacities()) {
    const std::int64_t nominal = nominal_milli(ledger_.topology().get(), node);
    if (reported.until <= now_) {
      draft_.forget_capacity(node);
      record(node, fmt::format("node {}: {} has expired; its nominal capacity counts again", node,
                               describe(reported, nominal)));
    } else if (!reported.lowers && reported.below_since.count() != 0 && now_ - reported.below_since >= kLowAfter) {
      ReportedCapacity after = reported;
      after.lowers = true;
      record(node,
             fmt::format("node {}: {} for {} s: {} fewer can be had for exclusive use", node,
                         describe(reported, nominal), kLowAfter.count(), counted(missing_cpus(after, nominal), "CPU")));
      draft_.put_capacity(std::move(after));
    }
  }
}

/// Judges each capacity anew: it may become low, or cease to be, when its node has more or fewer CPUs than before.
void CapacityTransitions::judge(const topology::Topology& topology) {
  for (const auto& [node, reported] : ledger_.reported_capacities()) {
    ReportedCapacity after = judged(reported, reported, nominal_milli(&topology, node), now_);
    // The wall clock may have been set back while no daemon ran.
    after.below_since = std::min(after.below_since, now_);
    if (after != reported) draft_.put_capacity(std::move(after));
  }
}

void CapacityTransitions::set_clock(std::chrono::milliseconds by) {
  for (const auto& [node, reported] : ledger_.reported_capacities()) {
    ReportedCapacity after = reported;
    after.until += by;
    if (after.below_since.count() != 0) after.below_since += by;
    draft_.put_capacity(std::move(after));
  }
}

void CapacityTransitions::record(std::uint32_t node, std::string reason) {
  draft_.record_event({AuditEvent::kCapacity, std::move(reason), NodeSet{node}});
}

}  // namespace topolet::engine
