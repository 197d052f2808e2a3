#include "plugins/gpu/cpu_split.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "plugins/gpu/locality_model.hpp"

namespace topolet::gpu {
namespace {

using sdk::Set;

/// A node with CPUs that may be assigned.
struct UsableNode {
  std::uint32_t position = 0;
  Set cpus;
  std::size_t size = 0;      ///< of `cpus`
  std::size_t devices = 0;   ///< that this node serves
  std::size_t assigned = 0;  ///< CPUs
};

std::vector<UsableNode> usable_nodes(const topolet_pick_request& picking, const LocalityModel& model) {
  const topolet_topology& topology = *picking.request->topology;
  const Set usable = model.assignable(picking.usable);
  std::vector<UsableNode> nodes;
  for (const std::uint32_t position : model.nodes().positions()) {
    Set cpus = Set(sdk::nodes(topology)[position].cpus) & usable;
    const std::size_t size = cpus.size();
    if (size > 0) nodes.push_back({position, std::move(cpus), size, 0, 0});
  }
  return nodes;
}

/// The gain of adding a node to those chosen so far: devices that become local, and how much nearer all devices get.
struct LocalityGain {
  std::size_t local = 0;
  double nearness = 0;
};

LocalityGain gain_of(const UsableNode& node, const LocalityModel& model, const std::vector<double>& reached) {
  LocalityGain gain;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const double nearness = model.nearness_to(i, node.position);
    gain.local += nearness == 1 && reached[i] < 1 ? 1 : 0;
    gain.nearness += std::max(0.0, nearness - reached[i]);
  }
  return gain;
}

/// Each device is served by the node nearest to it, among equals by the first.
void count_devices(const std::vector<UsableNode*>& serving, const LocalityModel& model) {
  for (std::size_t i = 0; i < model.device_count() && !serving.empty(); ++i) {
    const auto nearest =
        std::max_element(serving.begin(), serving.end(), [&](const UsableNode* a, const UsableNode* b) {
          return model.nearness_to(i, a->position) < model.nearness_to(i, b->position);
        });
    ++(*nearest)->devices;
  }
}

/// Chooses as few nodes as bring all devices as near as possible, one by one: next is the one with the largest gain.
std::vector<UsableNode*> choose_serving(std::vector<UsableNode>& nodes, const LocalityModel& model) {
  std::vector<double> reached(model.device_count(), 0);
  std::vector<UsableNode*> chosen;
  while (chosen.size() < model.max_nodes()) {
    UsableNode* best = nullptr;
    LocalityGain most;
    for (UsableNode& node : nodes) {
      const LocalityGain gain = gain_of(node, model, reached);
      if (gain.nearness <= 0) continue;
      const auto rank = [](const LocalityGain& of, const UsableNode& at) {
        return std::tuple(of.local, of.nearness, at.size);
      };
      if (best == nullptr || rank(gain, node) > rank(most, *best)) best = &node, most = gain;
    }
    if (best == nullptr) break;
    chosen.push_back(best);
    for (std::size_t i = 0; i < reached.size(); ++i) {
      reached[i] = std::max(reached[i], model.nearness_to(i, best->position));
    }
  }
  count_devices(chosen, model);
  return chosen;
}

/// Distributes `count` CPUs in proportion to the devices, `step` at a time: some to each node first, then always to the
/// one farthest below its fair share. CPUs that would exceed a fair share are left over.
void apportion(const std::vector<UsableNode*>& serving, std::size_t count, std::size_t step) {
  std::size_t devices = 0;
  std::size_t assigned = 0;
  for (UsableNode* node : serving) {
    node->assigned = std::min({step, node->size, count - assigned});
    assigned += node->assigned;
    devices += node->devices;
  }
  const auto shortage = [&](const UsableNode& node) {
    const double fair_share = static_cast<double>(count * node.devices) / static_cast<double>(devices);
    const bool fits = node.assigned + step <= node.size;
    return fits ? fair_share - static_cast<double>(node.assigned + step) : -1;
  };
  while (assigned + step <= count) {
    UsableNode* next = nullptr;
    for (UsableNode* node : serving) {
      if (shortage(*node) >= 0 && (next == nullptr || shortage(*node) > shortage(*next))) next = node;
    }
    if (next == nullptr) return;
    next->assigned += step;
    assigned += step;
  }
}

}  // namespace

bool has_chosen_cpus(const topolet_pick_request& picking) { return picking.stage == TOPOLET_PICK_REVIEW; }

bool has_choice(const topolet_pick_request& picking) {
  if (has_chosen_cpus(picking)) return sdk::size_of(picking.chosen) < sdk::size_of(picking.usable);
  if (picking.request->exclusive == 0) return false;
  std::size_t nodes = 0;
  for (const topolet_node& node : sdk::nodes(*picking.request->topology)) {
    const bool has_some = node.memory_only == 0 && sdk::size_of_both(node.cpus, picking.usable) > 0;
    nodes += has_some ? 1 : 0;
  }
  return nodes > 1;
}

std::vector<CpuMinimum> split_among_nodes(const topolet_pick_request& picking, const ContainerDevices& container,
                                          const Rules& rules) {
  if (has_chosen_cpus(picking)) return {};
  const LocalityModel model(*picking.request, container, rules.whole_cores);
  const std::size_t count = picking.request->exclusive_cpus;
  std::vector<UsableNode> nodes = usable_nodes(picking, model);
  const std::vector<UsableNode*> serving = choose_serving(nodes, model);
  if (serving.empty()) return {};

  std::vector<CpuMinimum> minimums;
  // If one node serves all devices, the other nodes local to them do as well, unless there are too few CPUs for all.
  const auto is_equivalent = [&](const UsableNode& node) {
    return !model.is_local_to_any(node.position) ||
           model.devices_local_to(node.position) == model.devices_local_to(serving[0]->position);
  };
  const bool are_equivalent = serving.size() == 1 && std::all_of(nodes.begin(), nodes.end(), is_equivalent);
  if (!are_equivalent || serving.size() == model.max_nodes()) {
    const bool in_cores = rules.whole_cores || count >= model.threads_per_core() * serving.size();
    apportion(serving, count, in_cores ? model.threads_per_core() : 1);
    for (const UsableNode* node : serving) minimums.push_back({node->cpus, node->assigned});
  }
  std::map<double, Set> by_distance;  // key: nearness, negated
  for (const UsableNode& node : nodes) {
    const double nearness = model.is_local_to_any(node.position) ? 2 : model.nearness_of(node.position);
    by_distance[-nearness] |= node.cpus;
  }
  // The farthest CPUs need no minimum: they are what is left.
  for (auto group = by_distance.begin(); std::next(group) != by_distance.end(); ++group) {
    minimums.push_back({group->second, count});
  }
  return minimums;
}

std::string missed_devices(const topolet_pick_request& picking, const ContainerDevices& container, const Rules& rules) {
  if (!has_chosen_cpus(picking)) return {};
  const LocalityModel model(*picking.request, container, rules.whole_cores);
  if (!model.has_devices()) return {};
  const topolet_set nodes = sdk::candidates(*picking.request)[picking.candidate].nodes;
  const Set usable = model.assignable(picking.usable);
  const Nodes possible_nodes = model.nodes().usable(nodes, usable.view());
  const Nodes chosen_nodes = model.nodes().usable(nodes, picking.chosen);
  const std::size_t possible = model.score(possible_nodes, usable.view()).local;
  const std::size_t local = model.score(chosen_nodes, picking.chosen).local;
  if (local >= possible) return {};
  return "with CPUs " + Set(picking.chosen).to_string() + ' ' + model.local_text(local) + ", though " +
         std::to_string(possible) + " could be";
}

}  // namespace topolet::gpu
