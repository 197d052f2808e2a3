#include "core/machine/machine.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "core/base/text.hpp"
#include "core/machine/kubepods.hpp"
#include "core/preflight/findings.hpp"
#include "core/topology/discover.hpp"

namespace topolet::preflight {
namespace {

constexpr const char* kReserved = "placement.reserved-cpus";
constexpr const char* kAllowed = "placement.allowed-cpus";

/// The option that a refusal is about: the one that it names, or else the one that is set.
std::string option_of(const Report& report, const std::string& refusal) {
  if (refusal.find("placement.reserved-cpus names") != std::string::npos) return kReserved;
  if (refusal.find(kAllowed) != std::string::npos) return kAllowed;
  return report.is_set(kReserved) || !report.is_set(kAllowed) ? kReserved : kAllowed;
}

}  // namespace

std::optional<std::string> describe_shared_minimum(const config::PlacementOptions& options,
                                                   const engine::CpuInventory& cpus) {
  const bool from_pool = options.rules.isolated == placement::IsolatedRule::kAnnotated ||
                         !cpus.isolated.intersects(cpus.allowed - cpus.reserved);
  if (!from_pool) return std::nullopt;
  const std::size_t pool = (cpus.allowed - cpus.reserved - cpus.isolated).size();
  if (options.rules.min_shared_cpus < pool) return std::nullopt;
  return fmt::format(
      "placement.min-shared-cpus = {} keeps the whole pool of {} shared: no container can get exclusive CPUs; lower it "
      "if some are to",
      options.rules.min_shared_cpus, counted(pool, "CPU"));
}

std::optional<std::string> describe_no_isolated(const config::PlacementOptions& options,
                                                const engine::CpuInventory& cpus) {
  const bool needs_some = options.rules.isolated == placement::IsolatedRule::kAlways &&
                          options.rules.exclusive != placement::ExclusiveRule::kNever;
  if (!needs_some || cpus.isolated.intersects(cpus.allowed - cpus.reserved)) return std::nullopt;
  return "placement.isolated = always, and the kernel isolates no CPU that containers may use: no container can get "
         "exclusive CPUs; isolate some (kernel parameter isolcpus), or set prefer";
}

void check_machine(Report& report) {
  const config::PlacementOptions& options = report.options().placement;
  const auto topology = topology::discover({});
  if (!topology) return report.mistake(kAllowed, topology.error().message);
  const auto pods = machine::kubepods_cpus("/sys/fs/cgroup");
  if (!pods) return report.mistake(kAllowed, pods.error().message);
  if (options.allowed_cpus && !options.allowed_cpus->is_subset_of((*topology)->online)) {
    report.warning(kAllowed, fmt::format("CPUs {} are not online; online are {}",
                                         (*options.allowed_cpus - (*topology)->online).to_string(),
                                         (*topology)->online.to_string()));
  }
  const Status fits = machine::check_machine(**topology, options, *pods);
  if (fits) {
    const engine::Engine::Machine machine = machine::make_machine(*topology, options, *pods);
    const CpuSet outside = (options.reserved_cpus & (*topology)->online) - machine.cpus.allowed;
    if (!outside.empty()) {
      report.warning(
          kReserved,
          fmt::format("CPUs {} are not among those that containers may use, {}: nobody is placed there, whether "
                      "they are reserved or not; remove them, or widen {}",
                      outside.to_string(), machine.cpus.allowed.to_string(),
                      options.allowed_cpus ? kAllowed : "the cpuset of the kubelet's pods"));
    }
    if (const auto all_shared = describe_shared_minimum(options, machine.cpus)) {
      report.warning("placement.min-shared-cpus", *all_shared);
    }
    if (const auto none_isolated = describe_no_isolated(options, machine.cpus)) {
      report.warning("placement.isolated", *none_isolated);
    }
    return;
  }
  // Either option may be wrong by itself; only the first is told of.
  std::vector<std::string> refusals;
  const auto refuse_without = [&](auto change) {
    config::PlacementOptions other = options;
    change(other);
    const Status made = machine::check_machine(**topology, other, *pods);
    if (made || std::find(refusals.begin(), refusals.end(), made.error().message) != refusals.end()) return;
    refusals.push_back(made.error().message);
  };
  refuse_without([](config::PlacementOptions& other) { other.reserved_cpus = {}; });
  refuse_without([](config::PlacementOptions& other) { other.allowed_cpus.reset(); });
  if (refusals.empty()) refusals.push_back(fits.error().message);
  for (const std::string& refusal : refusals) report.mistake(option_of(report, refusal), refusal);
}

}  // namespace topolet::preflight
