#include "plugins/gpu/local_cpus.hpp"

#include <algorithm>
#include <cmath>

#include "plugins/gpu/bench.hpp"
#include "plugins/gpu/locality.hpp"

namespace topolet::gpu {
namespace {

using sdk::Set;

std::string list_of(const std::vector<NearCpus>& devices) {
  std::string text;
  for (const NearCpus& near : devices) text += (text.empty() ? "" : ", ") + near.device;
  return text;
}

}  // namespace

std::vector<NearCpus> near_cpus_of(const topolet_topology& topology, const Sought& sought) {
  std::vector<NearCpus> all;
  for (const Device& device : sought.devices) {
    const Set cpus = cpus_of(topology, device.spot);
    Set of_nodes;
    for (const std::uint32_t home : homes_of(topology, device.spot)) of_nodes |= sdk::nodes(topology)[home].cpus;
    const bool says_more = of_nodes.empty() ? !(Set(topology.online) - cpus).empty()
                                            : (cpus - of_nodes).empty() && !(of_nodes - cpus).empty();
    if (!cpus.empty() && says_more) all.push_back({device.name, cpus, !of_nodes.empty()});
  }
  return all;
}

std::vector<Verdict> judge_by_cpus(const topolet_request& request, const Sought& sought, const Rules& rules) {
  const std::vector<NearCpus> near = near_cpus_of(*request.topology, sought);
  const bool is_nodeless =
      !near.empty() && near.size() == sought.devices.size() &&
      std::none_of(near.begin(), near.end(), [](const NearCpus& device) { return device.has_node; });
  if (!is_nodeless) return {};
  Set local;
  for (const NearCpus& device : near) local |= device.cpus;
  const std::size_t wanted = request.exclusive == 0 ? 1 : std::max<std::size_t>(1, request.exclusive_cpus);
  std::vector<Verdict> verdicts;
  for (const topolet_candidate& candidate : sdk::candidates(request)) {
    const std::size_t free = std::min(wanted, sdk::size_of_both(candidate.free, local.view()));
    std::string how_many = free == 0 ? "no " : "";
    if (free > 0 && request.exclusive != 0) how_many = std::to_string(free) + " of " + std::to_string(wanted) + ' ';
    std::string reason = nodes_text(candidate.nodes) + ": " + how_many + "CPUs local to " + list_of(near) +
                         ", of CPUs " + local.to_string() + " without a node";
    for (const std::string& why : sought.unknown) reason += "; not counted: " + why;
    if (free == 0 && rules.affinity == Affinity::kRequire) {
      verdicts.push_back({TOPOLET_VERDICT_REJECT, 0, "affinity require: " + reason});
    } else {
      const auto score = std::lround(100.0 * static_cast<double>(free) / static_cast<double>(wanted));
      verdicts.push_back({TOPOLET_VERDICT_SCORE, static_cast<std::int32_t>(score), std::move(reason)});
    }
  }
  return verdicts;
}

std::vector<Share> share_by_cpus(const topolet_pick_request& picking, const Sought& sought, const Rules& rules) {
  const topolet_request& request = *picking.request;
  const std::vector<NearCpus> near = near_cpus_of(*request.topology, sought);
  if (request.exclusive == 0 || is_chosen(picking) || near.empty()) return {};
  const Bench bench(request, sought, rules.whole_cores);
  const Set usable = bench.takeable(picking.usable);
  const std::size_t step = rules.whole_cores ? bench.per_core() : 1;
  const std::size_t due = std::max(step, request.exclusive_cpus / sought.devices.size() / step * step);
  std::vector<Share> shares;
  Set local;
  for (const NearCpus& device : near) {
    const Set cpus = device.cpus & usable;
    local |= cpus;
    const auto same =
        std::find_if(shares.begin(), shares.end(), [&cpus](const Share& share) { return share.cpus == cpus; });
    if (same != shares.end()) {
      same->count += due;
    } else if (!cpus.empty()) {
      shares.push_back({cpus, due});
    }
  }
  const bool are_all = near.size() == sought.devices.size();
  if (are_all && !local.empty()) shares.push_back({local, request.exclusive_cpus});
  return shares;
}

std::string shortcoming_by_cpus(const topolet_pick_request& picking, const Sought& sought) {
  if (!is_chosen(picking) || picking.request->exclusive == 0) return {};
  for (const NearCpus& device : near_cpus_of(*picking.request->topology, sought)) {
    const topolet_set local = device.cpus.view();
    if (sdk::size_of_both(picking.chosen, local) > 0 || sdk::size_of_both(picking.usable, local) == 0) continue;
    // Fewer CPUs than devices cannot be near to all of them.
    if (sdk::size_of(picking.chosen) < sought.devices.size()) continue;
    return "CPUs " + Set(picking.chosen).to_string() + ": none of " + device.cpus.to_string() +
           ", which are local to " + device.device;
  }
  return {};
}

}  // namespace topolet::gpu
