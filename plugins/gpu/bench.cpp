#include "plugins/gpu/bench.hpp"

#include <algorithm>
#include <cmath>

#include "plugins/gpu/local_cpus.hpp"

namespace topolet::gpu {
namespace {

constexpr std::size_t kMostOthers = 3;
constexpr std::size_t kMostUnknown = 4;
constexpr double kSpread = 2;  // points among equals for CPUs that are near no device; the plugin's weight counts too

std::string count_of(std::size_t count, std::string_view noun) {
  return std::to_string(count) + ' ' + std::string(noun) + 's';
}

bool is_one_of(const Nodes& nodes, std::uint32_t node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

std::size_t threads_per_core(const topolet_topology& topology) {
  std::size_t most = 1;
  for (std::size_t i = 0; i < topology.core_count; ++i) most = std::max(most, sdk::size_of(topology.cores[i]));
  return most;
}

}  // namespace

std::int32_t Standing::shortfall() const {
  return static_cast<std::int32_t>(std::lround(kSpread * spread)) + static_cast<std::int32_t>(tier) +
         (farthest > 0 && !in_package ? 1 : 0);
}

Bench::Bench(const topolet_request& request, const Sought& sought, bool whole_cores)
    : request_(request),
      topology_(*request.topology),
      nodes_(topology_),
      whole_cores_(whole_cores),
      per_core_(threads_per_core(topology_)) {
  std::vector<std::string> remarks;
  for (const Device& device : sought.devices) {
    Lodging lodging = lodging_of(topology_, device.spot, sought.cpu_nodes);
    // One that is near to every node, or to none, is no reason to prefer any.
    const bool is_everywhere = lodging.homes.size() == nodes_.positions().size() && lodging.homes.size() > 1;
    const std::string detour = detour_text(lodging);
    if (lodging.origins.empty() || is_everywhere) {
      placeless_.push_back(detour.empty() ? device.name + ": the machine ties it to no node" : device.name + detour);
      continue;
    }
    if (!detour.empty()) remarks.push_back(device.name + detour);
    const std::string_view noun = noun_of(topology_, device.spot);
    noun_ = noun_.empty() || noun_ == noun ? noun : "device";
    devices_.push_back(std::move(lodging));
  }
  for (const NearCpus& near : near_cpus_of(topology_, sought)) {
    remarks.push_back(near.device + ": CPUs " + near.cpus.to_string() + " are local" +
                      (near.has_node ? ", not all of the node" : ", and without a node"));
  }
  for (const Lodging& one : devices_) {
    measure(one);
    for (const Lodging& other : devices_) tiers_.push_back(closeness(topology_, nodes_, one, other));
  }
  for (const std::string& why : sought.unknown) notes_.push_back("not counted: " + why);
  for (const std::string& why : placeless_) notes_.push_back("not counted: " + why);
  notes_.insert(notes_.end(), remarks.begin(), remarks.end());
}

/// Of a device whose own node has no CPUs.
std::string Bench::detour_text(const Lodging& device) const {
  if (device.origins == device.homes) return {};
  const std::string where = ": " + nodes_text(os_indices(device.origins));
  if (device.homes.empty()) return where + (device.origins.size() == 1 ? " has" : " have") + " no CPU online";
  return where + (device.origins.size() == 1 ? " has" : " have") +
         " no CPUs; nearest: " + nodes_text(os_indices(device.homes));
}

sdk::Set Bench::os_indices(const Nodes& nodes) const {
  sdk::Set set;
  for (const std::uint32_t node : nodes) set.insert(nodes_.os_index(node));
  return set;
}

void Bench::measure(const Lodging& device) {
  for (std::uint32_t node = 0; node < topology_.node_count; ++node) {
    Way way;
    for (const std::uint32_t origin : device.origins) {
      way.distance = std::min(way.distance, std::max(nodes_.distance(node, origin), 1U));
    }
    for (const std::uint32_t home : device.homes) {
      way.in_package = way.in_package || nodes_.share_a_package(node, home);
      way.is_home = way.is_home || node == home;
    }
    ways_.push_back(way);
  }
}

std::size_t Bench::most_nodes() const {
  if (request_.exclusive == 0) return topology_.node_count;
  return whole_cores_ ? (request_.exclusive_cpus + per_core_ - 1) / per_core_ : request_.exclusive_cpus;
}

sdk::Set Bench::takeable(topolet_set free) const {
  if (!whole_cores_ || request_.exclusive == 0) return free;
  sdk::Set whole;
  for (std::size_t i = 0; i < topology_.core_count; ++i) {
    const sdk::Set core = sdk::Set(topology_.cores[i]) & sdk::Set(topology_.online);
    if (sdk::size_of_both(core.view(), free) == core.size()) whole |= core;
  }
  return whole.size() < request_.exclusive_cpus ? sdk::Set(free) : whole;
}

Standing Bench::standing(const Nodes& nodes, topolet_set free) const {
  const Nodes reached = within_reach(nodes);
  Standing standing;
  standing.in_package = true;
  std::vector<std::size_t> local;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::uint32_t distance = distance_to(i, reached);
    standing.nearness += nearness_at(distance) / static_cast<double>(devices_.size());
    if (distance == 0) {
      for (const std::size_t other : local) {
        standing.tier = std::max(standing.tier, tiers_[i * devices_.size() + other]);
      }
      local.push_back(i);
      continue;
    }
    standing.nearest = standing.farthest == 0 ? distance : std::min(standing.nearest, distance);
    standing.farthest = std::max(standing.farthest, distance);
    standing.in_package = standing.in_package && is_in_package(i, reached);
  }
  standing.local = local.size();
  standing.is_cut = reached.size() < nodes.size();
  const auto idle = std::count_if(nodes.begin(), nodes.end(), [&](std::uint32_t node) {
    return std::none_of(local.begin(), local.end(), [&](std::size_t i) { return is_home(i, node); });
  });
  standing.spread = nodes.empty() ? 1 : static_cast<double>(idle) / static_cast<double>(nodes.size());
  count_cpus(standing, reached, free);
  return standing;
}

void Bench::count_cpus(Standing& standing, const Nodes& nodes, topolet_set free) const {
  const std::size_t wanted = request_.exclusive == 0 ? 0 : request_.exclusive_cpus;
  standing.local_cpus = wanted;
  if (wanted == 0 || standing.local == 0) return;
  std::size_t local = 0;
  double elsewhere = 0;
  for (const std::uint32_t node : nodes) {
    if (is_home_of_any(node)) {
      local += sdk::size_of_both(sdk::nodes(topology_)[node].cpus, free);
    } else {
      elsewhere = std::max(elsewhere, nearness_of(node));
    }
  }
  if (local >= wanted) return;
  standing.local_cpus = local;
  const double share = static_cast<double>(local) / static_cast<double>(wanted);
  standing.nearness = share * standing.nearness + (1 - share) * elsewhere;
}

bool Bench::misses_one(const Nodes& nodes) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (distance_to(i, nodes) != 0) return true;
  }
  return false;
}

std::size_t Bench::local_to(std::uint32_t node) const {
  std::size_t local = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) local += is_home(i, node) ? 1 : 0;
  return local;
}

double Bench::nearness_of(std::uint32_t node) const {
  double sum = 0;
  for (std::size_t i = 0; i < devices_.size(); ++i) sum += nearness_to(i, node);
  return devices_.empty() ? 0 : sum / static_cast<double>(devices_.size());
}

/// As many of the nodes as the container can be on: each time the one that most devices are local to that were to
/// none so far, and of such the one that brings all of them nearest.
Nodes Bench::within_reach(const Nodes& nodes) const {
  if (nodes.size() <= most_nodes()) return nodes;
  std::vector<double> reached_nearness(devices_.size(), 0);
  Nodes reached;
  Nodes rest = nodes;
  while (reached.size() < most_nodes()) {
    auto best = rest.begin();
    std::pair<std::size_t, double> most(0, -1);
    for (auto node = rest.begin(); node != rest.end(); ++node) {
      std::pair<std::size_t, double> gain;
      for (std::size_t i = 0; i < devices_.size(); ++i) {
        gain.first += reached_nearness[i] < 1 && is_home(i, *node) ? 1 : 0;
        gain.second += std::max(reached_nearness[i], nearness_to(i, *node));
      }
      if (gain > most) best = node, most = gain;
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      reached_nearness[i] = std::max(reached_nearness[i], nearness_to(i, *best));
    }
    reached.push_back(*best);
    rest.erase(best);
  }
  return reached;
}

double Bench::nearness_to(std::size_t device, std::uint32_t node) const {
  return is_home(device, node) ? 1 : nearness_at(way(device, node).distance);
}

/// 0: local.
std::uint32_t Bench::distance_to(std::size_t device, const Nodes& nodes) const {
  std::uint32_t least = kUnknownDistance;
  for (const std::uint32_t node : nodes) {
    if (is_home(device, node)) return 0;
    least = std::min(least, way(device, node).distance);
  }
  return least;
}

/// What is remote at 20 is worth half of what is local, at 40 a quarter; never as much.
double Bench::nearness_at(std::uint32_t distance) {
  if (distance == 0) return 1;
  return distance == kUnknownDistance ? 0 : std::min(0.9, 10.0 / distance);
}

bool Bench::is_in_package(std::size_t device, const Nodes& nodes) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](std::uint32_t node) { return way(device, node).in_package; });
}

/// Homes of devices that are in the candidate, but full.
sdk::Set Bench::without_free_cpus(const topolet_candidate& candidate, const Nodes& usable) const {
  sdk::Set full;
  if (usable.size() == sdk::size_of(candidate.nodes)) return full;
  for (const std::uint32_t node : nodes_.positions()) {
    const bool is_in = topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0;
    if (is_in && !is_one_of(usable, node) && is_home_of_any(node)) full.insert(nodes_.os_index(node));
  }
  return full;
}

std::string Bench::share_text(std::size_t count) const {
  return std::to_string(count) + " of " + count_of(devices_.size(), noun_);
}

std::string Bench::text(const std::string& where, const Standing& standing, std::size_t takeable) const {
  const bool is_short = takeable == 0 || (request_.exclusive != 0 && takeable < request_.exclusive_cpus);
  std::string text = where + ": ";
  if (standing.local == 0) {
    text += "none";
  } else {
    text += share_text(standing.local) + " local";
    if (!is_short && request_.exclusive != 0 && standing.local_cpus < request_.exclusive_cpus) {
      text += " to " + std::to_string(standing.local_cpus) + " of " + std::to_string(request_.exclusive_cpus) + " CPUs";
    }
    if (standing.local > 1) text += ", " + std::string(name_of(standing.tier));
  }
  text += rest_text(standing);
  if (!is_short) return text;
  text += standing.local > 0 ? ", but " : ", and ";
  if (takeable == 0) return text + "no CPU free";
  return text + "only " + std::to_string(takeable) + " of " + std::to_string(request_.exclusive_cpus) + " CPUs free";
}

/// Of the devices that are not local.
std::string Bench::rest_text(const Standing& standing) const {
  if (standing.farthest == 0) return "";
  const bool is_one = devices_.size() - standing.local == 1;
  // All that stands between says how near the local ones are to each other.
  const std::string who = standing.local == 0 ? ", " : is_one ? ", the other one at " : ", the others at ";
  if (standing.farthest == kUnknownDistance) return who + (standing.local == 0 ? "" : "a ") + "distance not known";
  std::string text = who + '+' + std::to_string(standing.nearest);
  if (standing.nearest != standing.farthest) text += " to +" + std::to_string(standing.farthest);
  text += topology_.distances_known != 0 ? " distance" : " distance assumed";
  if (!standing.in_package) return text;
  if (standing.local == 0) return text + ", same package";
  return text + (is_one ? " within its package" : " within their packages");
}

std::string Bench::own_text(const topolet_candidate& candidate, const Nodes& usable, const Standing& standing) const {
  std::string own = text(nodes_text(candidate.nodes), standing, takeable(candidate.free).size());
  const sdk::Set full = without_free_cpus(candidate, usable);
  if (!full.empty()) own += (whole_cores_ ? ", no whole free core on " : ", no free CPU on ") + nodes_text(full);
  if (standing.is_cut) own += ", counting as many nodes as it has " + std::string(whole_cores_ ? "cores" : "CPUs");
  return own;
}

std::string Bench::refusal(const topolet_candidate& candidate, const Nodes& usable, const Standing& standing) const {
  const std::size_t width = sdk::size_of(candidate.nodes);
  const bool is_widest = width >= nodes_.positions().size();
  if (is_widest) return own_text(candidate, usable, standing) + notes();
  if (width <= 1) return own_text(candidate, usable, standing);
  return std::to_string(width) +
         " nodes together: " + (standing.local == 0 ? "none" : share_text(standing.local) + " local");
}

std::string Bench::reason(const topolet_candidate& candidate, const Nodes& usable, const Standing& standing) const {
  std::string reason = own_text(candidate, usable, standing);
  std::size_t said = 0;
  for (const auto& [node, other] : others_) {
    if (topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0) continue;
    if (said++ < kMostOthers) reason += "; " + other;
  }
  if (said > kMostOthers) reason += "; " + std::to_string(said - kMostOthers) + " more nodes";
  return reason + notes();
}

std::string Bench::notes() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(notes_.size(), kMostUnknown); ++i) text += "; " + notes_[i];
  if (notes_.size() > kMostUnknown) text += " and " + std::to_string(notes_.size() - kMostUnknown) + " more";
  return text;
}

/// As the first candidate with this node has it: they all are cut from the same pool. All CPUs of a node that is in
/// none: nothing is known of these.
sdk::Set Bench::free_on(std::uint32_t node) const {
  const sdk::Set cpus(sdk::nodes(topology_)[node].cpus);
  for (const topolet_candidate& candidate : sdk::candidates(request_)) {
    if (topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0) return cpus & sdk::Set(candidate.free);
  }
  return cpus;
}

void Bench::compare_nodes() {
  std::vector<std::pair<double, std::uint32_t>> order;
  for (const std::uint32_t node : nodes_.positions()) order.emplace_back(-nearness_of(node), node);
  std::sort(order.begin(), order.end());
  for (const auto& [_, node] : order) {
    sdk::Set alone;
    alone.insert(nodes_.os_index(node));
    const sdk::Set free = takeable(free_on(node).view());
    others_.emplace_back(node, text(nodes_text(alone), standing({node}, free.view()), free.size()));
  }
}

}  // namespace topolet::gpu
