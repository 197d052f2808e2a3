#include "plugins/gpu/local_cpu_verdicts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugins/gpu/local_cpus.hpp"
#include "plugins/gpu/locality_model.hpp"

namespace topolet::gpu {
namespace {

using sdk::Set;
using sdk::Verdict;

std::string names_of(const std::vector<LocalCpus>& devices) {
  std::string text;
  for (const LocalCpus& device : devices) text += (text.empty() ? "" : ", ") + device.device;
  return text;
}

/// "2 of 4 CPUs are", of a container that needs `needed`, or "free CPUs are" of one that shares its CPUs.
std::string count_text(const topolet_request& request, std::size_t free, std::size_t needed) {
  if (free == 0) return "no free CPU is";
  if (request.exclusive == 0) return "free CPUs are";
  return std::to_string(free) + " of " + std::to_string(needed) + (free == 1 ? " CPUs is" : " CPUs are");
}

/// CPUs outside any node count as one more node.
std::size_t width_of(const topolet_request& request, const topolet_candidate& candidate) {
  Set outside(candidate.cpus);
  for (const topolet_node& node : sdk::nodes(*request.topology)) {
    if (node.memory_only == 0) outside -= node.cpus;
  }
  return sdk::size_of(candidate.nodes) + (outside.empty() ? 0 : 1);
}

/// That hold the exclusive CPUs; SIZE_MAX if none do, and for a container that shares CPUs.
std::size_t fewest_nodes_for(const topolet_request& request) {
  std::size_t fewest = SIZE_MAX;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const bool holds_all = request.exclusive != 0 && sdk::size_of(candidate.usable) >= request.exclusive_cpus;
    if (holds_all) fewest = std::min(fewest, width_of(request, candidate));
  }
  return fewest;
}

}  // namespace

std::vector<Verdict> local_cpu_verdicts(const topolet_request& request, const ContainerDevices& container,
                                        const Rules& rules) {
  const std::vector<LocalCpus> locals = local_cpus_of(*request.topology, container);
  const bool all_without_node =
      !locals.empty() && locals.size() == container.devices.size() &&
      std::none_of(locals.begin(), locals.end(), [](const LocalCpus& device) { return device.has_node; });
  if (!all_without_node) return {};
  Set local;
  for (const LocalCpus& device : locals) local |= device.cpus;
  const std::size_t needed = cpus_needed(request);
  const std::size_t most_nodes = rules.split == Split::kCpus ? fewest_nodes_for(request) : SIZE_MAX;
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const std::size_t free = std::min(needed, sdk::size_of_both(candidate.usable, local.view()));
    std::string reason = nodes_text(candidate.nodes) + ": " + count_text(request, free, needed) + " local to " +
                         names_of(locals) + " (the local CPUs, " + local.to_string() + ", belong to no node)";
    for (const std::string& why : container.unresolved) reason += "; not counted: " + why;
    if (free == 0 && rules.affinity == Affinity::kRequire) {
      verdicts.push_back({TOPOLET_VERDICT_REJECT, 0, kRequireText + reason});
    } else {
      const bool is_too_wide = width_of(request, candidate) > most_nodes;
      if (is_too_wide) reason += "; split = cpus prefers fewer nodes for all CPUs";
      const auto score = is_too_wide ? 0 : std::lround(100.0 * static_cast<double>(free) / static_cast<double>(needed));
      verdicts.push_back({TOPOLET_VERDICT_SCORE, static_cast<std::int32_t>(score), std::move(reason)});
    }
  }
  return verdicts;
}

std::vector<CpuMinimum> split_by_local_cpus(const topolet_pick_request& picking, const ContainerDevices& container,
                                            const Rules& rules) {
  const topolet_request& request = *picking.request;
  const std::vector<LocalCpus> locals = local_cpus_of(*request.topology, container);
  if (request.exclusive == 0 || has_chosen_cpus(picking) || locals.empty()) return {};
  const LocalityModel model(request, container, rules.whole_cores);
  const Set usable = model.assignable(picking.usable);
  const std::size_t step = rules.whole_cores ? model.threads_per_core() : 1;
  const std::size_t count = std::max(step, request.exclusive_cpus / container.devices.size() / step * step);
  std::vector<CpuMinimum> minimums;
  Set local;
  for (const LocalCpus& device : locals) {
    const Set cpus = device.cpus & usable;
    local |= cpus;
    const auto same = std::find_if(minimums.begin(), minimums.end(),
                                   [&cpus](const CpuMinimum& minimum) { return minimum.cpus == cpus; });
    if (same != minimums.end()) {
      same->count += count;
    } else if (!cpus.empty()) {
      minimums.push_back({cpus, count});
    }
  }
  const bool all_have_local_cpus = locals.size() == container.devices.size();
  if (all_have_local_cpus && !local.empty()) minimums.push_back({local, request.exclusive_cpus});
  return minimums;
}

std::string missed_local_cpus(const topolet_pick_request& picking, const ContainerDevices& container) {
  if (!has_chosen_cpus(picking) || picking.request->exclusive == 0) return {};
  for (const LocalCpus& device : local_cpus_of(*picking.request->topology, container)) {
    const topolet_set local = device.cpus.view();
    if (sdk::size_of_both(picking.chosen, local) > 0 || sdk::size_of_both(picking.usable, local) == 0) continue;
    // Fewer CPUs than devices cannot be local to all of them.
    if (sdk::size_of(picking.chosen) < container.devices.size()) continue;
    return "of the chosen CPUs " + Set(picking.chosen).to_string() + " none is local to " + device.device +
           ", though CPUs " + (device.cpus & Set(picking.usable)).to_string() + " would be";
  }
  return {};
}

}  // namespace topolet::gpu
