#include "core/engine/handlers/foreign_cpuset.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace topolet::engine {
namespace {

constexpr std::size_t kLongestName = 100;

/// The container is being created, so that the runtime's id of it is not known to the ledger.
const Allocation* find_created(const Ledger& ledger, const operations::ForeignCpuset& found) {
  const Allocation* newest = nullptr;
  for (const auto& [key, allocation] : ledger.allocations()) {
    const bool is_it = key.pod_uid == found.pod_uid && key.name == found.container && allocation.is_pending() &&
                       (key.sandbox_id.empty() || key.sandbox_id == found.sandbox_id);
    if (is_it && (newest == nullptr || newest->workload.key.attempt < key.attempt)) newest = &allocation;
  }
  return newest;
}

/// What a plugin sets instead of what topolet does, as a sentence without its subject; empty if nothing.
struct Difference {
  std::string plugin;
  std::string text;
  CpuSet cpus;  ///< if it is about CPUs
};

std::optional<Difference> difference(const Allocation& allocation, const operations::ForeignCpuset& found) {
  const placement::Placement& placed = allocation.placement;
  Difference difference;
  std::vector<std::string> parts;
  if (found.mems_plugin && found.mems != placed.mems) {
    difference.plugin = *found.mems_plugin;
    parts.push_back(fmt::format("memory nodes {}{}", found.mems.to_string(),
                                placed.mems.empty() ? "" : " instead of " + placed.mems.to_string()));
  }
  if (found.cpus_plugin && found.cpus != placed.cpus) {
    difference.plugin = *found.cpus_plugin;
    difference.cpus = found.cpus;
    parts.insert(parts.begin(), fmt::format("CPUs {} instead of {}", found.cpus.to_string(), placed.cpus.to_string()));
  }
  if (parts.empty()) return std::nullopt;
  difference.text = fmt::format("{}", fmt::join(parts, ", and "));
  return difference;
}

}  // namespace

void judge_foreign_cpuset(const HandlerDeps& deps, const operations::ForeignCpuset& found, bool refuses,
                          const operations::OnForeignCpusetJudged& judged) {
  const Allocation* allocation = find_created(deps.ledger(), found);
  if (allocation == nullptr || allocation->placement.mode == placement::Mode::kForeign) return judged(std::nullopt);
  const std::optional<Difference> other = difference(*allocation, found);
  if (!other) return judged(std::nullopt);
  const std::string plugin = printable(other->plugin, kLongestName);
  const placement::Workload& workload = allocation->workload;
  const std::string warning = fmt::format(
      "NRI plugin '{}' sets the CPUs or memory nodes of its containers instead of topolet{}; switch that "
      "off in the plugin (koordlet: feature gate CPUSetAllocator=false), or remove it",
      plugin, refuses ? ", and they are refused (nri.guard = deny)" : "");
  const Pod* pod = deps.ledger().find_pod(workload.key.sandbox_id);
  if (pod == nullptr || !pod->was_warned(warning))
    deps.log.warn("pod {}/{}: {}", workload.pod_namespace, workload.pod_name, warning);
  std::optional<std::string> refusal;
  if (refuses) {
    refusal = fmt::format(
        "topolet: NRI plugin '{}' gives {} {} (nri.guard = deny): switch that off in the plugin "
        "(koordlet: feature gate CPUSetAllocator=false), remove it, or use nri.guard = warn",
        plugin, display_name(workload), other->text);
  }
  const std::string reason = fmt::format("NRI plugin '{}' sets {}{}", plugin, other->text, refuses ? "; refused" : "");
  deps.committer.commit(event::SetByPlugin{workload.key, plugin, other->cpus, reason, warning},
                        [judged, refusal] { judged(refusal); });
}

}  // namespace topolet::engine
