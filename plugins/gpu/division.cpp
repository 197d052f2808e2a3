#include "plugins/gpu/division.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "plugins/gpu/bench.hpp"

namespace topolet::gpu {
namespace {

using sdk::Set;

/// A node with CPUs that may be taken.
struct Ground {
  std::uint32_t node = 0;  ///< position
  Set cpus;
  std::size_t devices = 0;  ///< that are served from here
  std::size_t share = 0;
};

bool is_chosen(const topolet_pick_request& picking) {
  return TOPOLET_HAS(&picking, chosen) && sdk::size_of(picking.chosen) > 0;
}

std::vector<Ground> grounds_of(const topolet_pick_request& picking, const Bench& bench) {
  const topolet_topology& topology = *picking.request->topology;
  const Set usable = bench.takeable(picking.usable);
  std::vector<Ground> grounds;
  for (const std::uint32_t node : bench.nodes().positions()) {
    Set here = Set(sdk::nodes(topology)[node].cpus) & usable;
    if (!here.empty()) grounds.push_back({node, std::move(here), 0, 0});
  }
  return grounds;
}

/// As few nodes as serve all devices that can be: each time the one that serves most of the rest.
std::vector<Ground*> serving(std::vector<Ground>& grounds, const Bench& bench) {
  std::vector<bool> served(bench.devices());
  const auto serves = [&](const Ground& ground) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < served.size(); ++i) count += !served[i] && bench.is_home(i, ground.node) ? 1 : 0;
    return count;
  };
  std::vector<Ground*> chosen;
  while (chosen.size() < bench.most_nodes()) {
    Ground* best = nullptr;
    for (Ground& ground : grounds) {
      ground.devices =
          std::find(chosen.begin(), chosen.end(), &ground) == chosen.end() ? serves(ground) : ground.devices;
    }
    for (Ground& ground : grounds) {
      if (std::find(chosen.begin(), chosen.end(), &ground) != chosen.end() || ground.devices == 0) continue;
      const bool more = best == nullptr || ground.devices > best->devices;
      if (more || (ground.devices == best->devices && ground.cpus.size() > best->cpus.size())) best = &ground;
    }
    if (best == nullptr) break;
    chosen.push_back(best);
    for (std::size_t i = 0; i < served.size(); ++i) served[i] = served[i] || bench.is_home(i, best->node);
  }
  return chosen;
}

/// `count` CPUs by the number of devices, `step` by `step` and some to each; what is left over is nobody's.
void apportion(const std::vector<Ground*>& serving, std::size_t count, std::size_t step) {
  std::size_t devices = 0;
  std::size_t given = 0;
  for (Ground* ground : serving) {
    ground->share = std::min({step, ground->cpus.size(), count - given});
    given += ground->share;
    devices += ground->devices;
  }
  const auto lacks = [&](const Ground& ground) {
    const double due = static_cast<double>(count * ground.devices) / static_cast<double>(devices);
    const bool is_room = ground.share + step <= ground.cpus.size();
    return is_room ? due - static_cast<double>(ground.share + step) : -1;
  };
  while (given + step <= count) {
    Ground* next = nullptr;
    for (Ground* ground : serving) {
      if (lacks(*ground) >= 0 && (next == nullptr || lacks(*ground) > lacks(*next))) next = ground;
    }
    if (next == nullptr) return;
    next->share += step;
    given += step;
  }
}

}  // namespace

bool has_choice(const topolet_pick_request& picking) {
  if (is_chosen(picking)) return sdk::size_of(picking.chosen) < sdk::size_of(picking.usable);
  if (picking.request->exclusive == 0) return false;
  std::size_t nodes = 0;
  for (const topolet_node& node : sdk::nodes(*picking.request->topology)) {
    const bool has_some = node.memory_only == 0 && sdk::size_of_both(node.cpus, picking.usable) > 0;
    nodes += has_some ? 1 : 0;
  }
  return nodes > 1;
}

std::vector<Share> divide(const topolet_pick_request& picking, const Sought& sought, const Rules& rules) {
  if (is_chosen(picking)) return {};
  const Bench bench(*picking.request, sought, rules.whole_cores);
  const std::size_t count = picking.request->exclusive_cpus;
  std::vector<Ground> grounds = grounds_of(picking, bench);
  const std::vector<Ground*> serving = gpu::serving(grounds, bench);
  if (serving.empty()) return {};

  std::vector<Share> shares;
  // Any of the nodes of a device will do, unless some are needed for others or there are too few CPUs for all.
  const auto serves_as_well = [&](const Ground& ground) {
    return !bench.is_home_of_any(ground.node) || bench.local_to(ground.node) == serving[0]->devices;
  };
  const bool any_will_do = serving.size() == 1 && std::all_of(grounds.begin(), grounds.end(), serves_as_well);
  if (!any_will_do || serving.size() == bench.most_nodes()) {
    const bool in_cores = rules.whole_cores || count >= bench.per_core() * serving.size();
    apportion(serving, count, in_cores ? bench.per_core() : 1);
    for (const Ground* ground : serving) shares.push_back({ground->cpus, ground->share});
  }
  std::map<double, Set> by_distance;  // of nearness, negative
  for (const Ground& ground : grounds) {
    const double nearness = bench.is_home_of_any(ground.node) ? 2 : bench.nearness_of(ground.node);
    by_distance[-nearness] |= ground.cpus;
  }
  // Those that are farthest are what is left anyway.
  for (auto group = by_distance.begin(); std::next(group) != by_distance.end(); ++group) {
    shares.push_back({group->second, count});
  }
  return shares;
}

std::string shortcoming(const topolet_pick_request& picking, const Sought& sought, const Rules& rules) {
  if (!is_chosen(picking)) return {};
  const Bench bench(*picking.request, sought, rules.whole_cores);
  if (!bench.has_devices()) return {};
  const topolet_set nodes = sdk::candidates(*picking.request)[picking.candidate].nodes;
  const Set usable = bench.takeable(picking.usable);
  const Nodes offered = bench.nodes().usable(nodes, usable.view());
  const Nodes chosen = bench.nodes().usable(nodes, picking.chosen);
  const std::size_t could = bench.standing(offered, usable.view()).local;
  const std::size_t are = bench.standing(chosen, picking.chosen).local;
  if (are >= could) return {};
  return "CPUs " + Set(picking.chosen).to_string() + ": " + bench.share_text(are) + " local, where " +
         std::to_string(could) + " could be";
}

}  // namespace topolet::gpu
