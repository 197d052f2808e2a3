#include "plugins/gpu/division.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

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

/// What a node adds for the devices to those that are chosen already: how many become local, how much nearer all come.
struct Gain {
  std::size_t local = 0;
  double nearness = 0;
};

Gain gain_of(const Ground& ground, const Bench& bench, const std::vector<double>& reached) {
  Gain gain;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const double nearness = bench.nearness_to(i, ground.node);
    gain.local += nearness == 1 && reached[i] < 1 ? 1 : 0;
    gain.nearness += std::max(0.0, nearness - reached[i]);
  }
  return gain;
}

/// Each device is served from the node nearest to it, of several the first.
void count_devices(const std::vector<Ground*>& serving, const Bench& bench) {
  for (std::size_t i = 0; i < bench.devices() && !serving.empty(); ++i) {
    const auto nearest = std::max_element(serving.begin(), serving.end(), [&](const Ground* a, const Ground* b) {
      return bench.nearness_to(i, a->node) < bench.nearness_to(i, b->node);
    });
    ++(*nearest)->devices;
  }
}

/// As few nodes as bring all devices as near as they can be: each time the one that most become local to.
std::vector<Ground*> serving(std::vector<Ground>& grounds, const Bench& bench) {
  std::vector<double> reached(bench.devices(), 0);
  std::vector<Ground*> chosen;
  while (chosen.size() < bench.most_nodes()) {
    Ground* best = nullptr;
    Gain most;
    for (Ground& ground : grounds) {
      const Gain gain = gain_of(ground, bench, reached);
      if (gain.nearness <= 0) continue;
      const auto rank = [](const Gain& of, const Ground& at) {
        return std::tuple(of.local, of.nearness, at.cpus.size());
      };
      if (best == nullptr || rank(gain, ground) > rank(most, *best)) best = &ground, most = gain;
    }
    if (best == nullptr) break;
    chosen.push_back(best);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      reached[i] = std::max(reached[i], bench.nearness_to(i, best->node));
    }
  }
  count_devices(chosen, bench);
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

bool is_chosen(const topolet_pick_request& picking) {
  return TOPOLET_HAS(&picking, chosen) && sdk::size_of(picking.chosen) > 0;
}

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
    return !bench.is_home_of_any(ground.node) || bench.local_to(ground.node) == bench.local_to(serving[0]->node);
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
