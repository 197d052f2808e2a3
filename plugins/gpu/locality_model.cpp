#include "plugins/gpu/locality_model.hpp"

#include <algorithm>
#include <cmath>

#include "plugins/gpu/local_cpus.hpp"

namespace topolet::gpu {
namespace {

constexpr std::size_t kMaxComparedNodes = 3;
constexpr std::size_t kMaxNotes = 4;

// At most, for nodes that no device is local to. The plugin's weight multiplies it.
constexpr double kDevicelessPoints = 2;

/// "is" or "are".
std::string verb_for(std::size_t count) { return count == 1 ? " is" : " are"; }

}  // namespace

std::int32_t LocalityScore::penalty() const {
  return static_cast<std::int32_t>(std::lround(kDevicelessPoints * deviceless_share)) +
         static_cast<std::int32_t>(closeness) + (farthest > 0 && !same_package ? 1 : 0);
}

LocalityModel::LocalityModel(const topolet_request& request, const ContainerDevices& container, bool whole_cores)
    : request_(request),
      topology_(*request.topology),
      nodes_(topology_),
      core_map_(topology_),
      threads_per_core_(core_map_.most_threads()),
      whole_cores_(whole_cores) {
  std::vector<std::string> not_counted = container.unresolved;
  std::vector<std::string> remarks;
  for (const Device& device : container.devices) {
    DeviceLocality locality = device_locality(topology_, device.ref, container.cpu_nodes);
    // A device that is near every node, or none, is not a reason to prefer one of them.
    const bool is_near_all_nodes =
        locality.local_nodes.size() == nodes_.positions().size() && locality.local_nodes.size() > 1;
    const std::string remote_node = remote_node_text(locality);
    if (locality.measured_from.empty() || is_near_all_nodes) {
      not_counted.push_back(device.name +
                            (remote_node.empty() ? ": the machine does not say which node it is near" : remote_node));
      continue;
    }
    if (!remote_node.empty()) remarks.push_back(device.name + remote_node);
    const std::string_view noun = noun_of(topology_, device.ref);
    noun_ = noun_.empty() || noun_ == noun ? noun : "device";
    devices_.push_back(std::move(locality));
  }
  for (const LocalCpus& local : local_cpus_of(topology_, container)) {
    const std::string cpus = "CPUs " + local.cpus.to_string();
    remarks.push_back(local.device + (local.has_node ? ": of its node only " + cpus + " are local"
                                                     : ": " + cpus + " are local, which belong to no node"));
  }
  for (const DeviceLocality& one : devices_) {
    for (const DeviceLocality& other : devices_) closeness_.push_back(closeness(topology_, nodes_, one, other));
  }
  add_proximities();
  for (std::string& why : not_counted) why.insert(0, "not counted: ");
  not_counted.insert(not_counted.end(), remarks.begin(), remarks.end());
  notes_ = notes_text(not_counted);
}

/// Describes a device whose own node has no CPUs; empty for others.
std::string LocalityModel::remote_node_text(const DeviceLocality& device) const {
  if (device.measured_from == device.local_nodes) return {};
  const std::string text = ": " + nodes_text(nodes_.os_indices(device.measured_from)) +
                           (device.measured_from.size() == 1 ? " has" : " have");
  if (device.local_nodes.empty()) return text + " no CPU online";
  return text + " no CPUs, and the nearest CPUs are on " + nodes_text(nodes_.os_indices(device.local_nodes));
}

LocalityModel::Proximity LocalityModel::proximity_of(const DeviceLocality& device, std::uint32_t node) const {
  Proximity proximity;
  for (const std::uint32_t node_of_device : device.measured_from) {
    proximity.distance = std::min(proximity.distance, std::max(nodes_.distance(node, node_of_device), 1U));
  }
  for (const std::uint32_t local : device.local_nodes) {
    proximity.same_package = proximity.same_package || nodes_.share_a_package(node, local);
    proximity.is_local = proximity.is_local || node == local;
  }
  proximity.nearness = proximity.is_local ? 1 : nearness_at_distance(proximity.distance);
  return proximity;
}

void LocalityModel::add_proximities() {
  proximities_.reserve(topology_.node_count * devices_.size());
  for (std::uint32_t node = 0; node < topology_.node_count; ++node) {
    NodeLocality all;
    for (const DeviceLocality& device : devices_) {
      const Proximity& proximity = proximities_.emplace_back(proximity_of(device, node));
      all.local_devices += proximity.is_local ? 1 : 0;
      all.nearness += proximity.nearness;
    }
    if (!devices_.empty()) all.nearness /= static_cast<double>(devices_.size());
    node_localities_.push_back(all);
  }
}

std::size_t LocalityModel::max_nodes() const {
  if (request_.exclusive == 0) return topology_.node_count;
  return whole_cores_ ? (request_.exclusive_cpus + threads_per_core_ - 1) / threads_per_core_ : request_.exclusive_cpus;
}

sdk::Set LocalityModel::assignable(topolet_set free) const {
  if (!whole_cores_ || request_.exclusive == 0) return free;
  sdk::Set whole = core_map_.on_whole_cores(free);
  return whole.size() < request_.exclusive_cpus ? sdk::Set(free) : whole;
}

CandidateLocality LocalityModel::locality_of(const topolet_candidate& candidate) const {
  const sdk::Set free = assignable(candidate.usable);
  CandidateLocality locality{nodes_.usable(candidate.nodes, free.view()), free.size(), {}};
  locality.score = score(locality.usable, free.view());
  return locality;
}

LocalityScore LocalityModel::score(const Nodes& nodes, topolet_set free) const {
  const bool is_limited = nodes.size() > max_nodes();
  const Nodes best = is_limited ? best_nodes(nodes) : Nodes();
  const Nodes& reached = is_limited ? best : nodes;
  LocalityScore score;
  score.same_package = true;
  std::vector<std::size_t> local;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::uint32_t distance = distance_to(i, reached);
    score.nearness += nearness_at_distance(distance) / static_cast<double>(devices_.size());
    if (distance == 0) {
      for (auto other = local.begin(); other != local.end() && score.closeness < Closeness::kDifferentPackages;
           ++other) {
        score.closeness = std::max(score.closeness, closeness_[i * devices_.size() + *other]);
      }
      local.push_back(i);
      continue;
    }
    score.nearest = score.farthest == 0 ? distance : std::min(score.nearest, distance);
    score.farthest = std::max(score.farthest, distance);
    score.same_package = score.same_package && is_in_same_package(i, reached);
  }
  score.local = local.size();
  score.is_limited = is_limited;
  const auto deviceless = std::count_if(nodes.begin(), nodes.end(), [&](std::uint32_t node) {
    if (!is_limited) return !is_local_to_any(node);  // otherwise perhaps to one that it does not reach
    return std::none_of(local.begin(), local.end(), [&](std::size_t i) { return is_local(i, node); });
  });
  score.deviceless_share = nodes.empty() ? 1 : static_cast<double>(deviceless) / static_cast<double>(nodes.size());
  account_for_cpus(score, reached, free);
  return score;
}

void LocalityModel::account_for_cpus(LocalityScore& score, const Nodes& nodes, topolet_set free) const {
  const std::size_t wanted = request_.exclusive == 0 ? 0 : request_.exclusive_cpus;
  score.local_cpus = wanted;
  if (wanted == 0 || score.local == 0) return;
  std::size_t local = 0;
  double elsewhere = 0;
  for (const std::uint32_t node : nodes) {
    if (is_local_to_any(node)) {
      local += nodes_.count_on(node, free);
    } else {
      elsewhere = std::max(elsewhere, nearness_of(node));
    }
  }
  if (local >= wanted) return;
  score.local_cpus = local;
  const double share = static_cast<double>(local) / static_cast<double>(wanted);
  score.nearness = share * score.nearness + (1 - share) * elsewhere;
}

bool LocalityModel::misses_a_device(const Nodes& nodes) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (distance_to(i, nodes) != 0) return true;
  }
  return false;
}

/// Chooses as many nodes as the container can be on, one by one: next is the one local to most devices that have no
/// local node yet and, among equals, the one that brings all devices nearest.
Nodes LocalityModel::best_nodes(Nodes rest) const {
  std::vector<double> reached_nearness(devices_.size(), 0);
  Nodes reached;
  while (reached.size() < max_nodes()) {
    auto best = rest.begin();
    std::pair<std::size_t, double> most(0, -1);
    for (auto node = rest.begin(); node != rest.end(); ++node) {
      std::pair<std::size_t, double> gain;
      const Proximity* of_node = proximities_.data() + *node * devices_.size();
      for (std::size_t i = 0; i < reached_nearness.size(); ++i) {
        gain.first += static_cast<std::size_t>(reached_nearness[i] < 1 && of_node[i].is_local);
        gain.second += std::max(reached_nearness[i], of_node[i].nearness);
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

/// 0 if it is local.
std::uint32_t LocalityModel::distance_to(std::size_t device, const Nodes& nodes) const {
  std::uint32_t least = kUnknownDistance;
  for (const std::uint32_t node : nodes) {
    if (is_local(device, node)) return 0;
    least = std::min(least, proximity(device, node).distance);
  }
  return least;
}

/// SLIT distances are relative to 10 for local memory: at distance 20 a device counts half, at 40 a quarter. It never
/// counts as much as a local one.
double LocalityModel::nearness_at_distance(std::uint32_t distance) {
  if (distance == 0) return 1;
  return distance == kUnknownDistance ? 0 : std::min(0.9, 10.0 / distance);
}

bool LocalityModel::is_in_same_package(std::size_t device, const Nodes& nodes) const {
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](std::uint32_t node) { return proximity(device, node).same_package; });
}

/// Nodes of the candidate that are local to a device, but have no assignable CPU.
sdk::Set LocalityModel::full_local_nodes(const topolet_candidate& candidate, const Nodes& usable) const {
  sdk::Set full;
  if (usable.size() == sdk::size_of(candidate.nodes)) return full;
  for (const std::uint32_t node : nodes_.positions()) {
    const bool is_in = topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0;
    if (is_in && !contains(usable, node) && is_local_to_any(node)) full.insert(nodes_.os_index(node));
  }
  return full;
}

std::string LocalityModel::local_text(std::size_t count) const {
  const std::string noun(noun_);
  if (count == 0) return "no " + noun + " is local";
  return std::to_string(count) + " of " + std::to_string(devices_.size()) + ' ' + noun +
         (devices_.size() == 1 ? "" : "s") + verb_for(count) + " local";
}

std::string LocalityModel::describe(const std::string& where, const LocalityScore& score,
                                    std::size_t assignable) const {
  const std::size_t needed = cpus_needed(request_);
  const bool is_short = assignable < needed;
  std::string text = where + ": " + local_text(score.local);
  if (!is_short && request_.exclusive != 0 && score.local > 0 && score.local_cpus < needed) {
    text += " to " + std::to_string(score.local_cpus) + " of " + std::to_string(needed) + " CPUs";
  }
  if (score.local > 1) text += ", " + std::string(closeness_text(score.closeness));
  text += describe_remote(score);
  if (!is_short) return text;
  text += score.local > 0 ? ", but " : ", and ";
  if (assignable == 0) return text + "no CPU is free";
  return text + "only " + std::to_string(assignable) + " of " + std::to_string(needed) + " CPUs" +
         verb_for(assignable) + " free";
}

/// Describes the devices that are not local.
std::string LocalityModel::describe_remote(const LocalityScore& score) const {
  if (score.farthest == 0) return "";
  const bool is_one = devices_.size() - score.local == 1;
  const std::string who = score.local == 0 ? ", " : is_one ? ", the other is at " : ", the others are at ";
  if (score.farthest == kUnknownDistance) {
    return score.local == 0 ? ", distance unknown" : who + (is_one ? "an unknown distance" : "unknown distances");
  }
  std::string text = who + "distance " + std::to_string(score.nearest);
  if (score.nearest != score.farthest) text += " to " + std::to_string(score.farthest);
  if (topology_.distances_known == 0) text += " (assumed)";
  if (!score.same_package) return text;
  if (score.local == 0) return text + " in the same package";
  return text + (is_one ? " within its package" : " within their packages");
}

std::string LocalityModel::candidate_text(const topolet_candidate& candidate, const CandidateLocality& locality) const {
  std::string text = describe(nodes_text(candidate.nodes), locality.score, locality.assignable);
  const sdk::Set full = full_local_nodes(candidate, locality.usable);
  if (!full.empty()) text += (whole_cores_ ? ", no core entirely free on " : ", no CPU free on ") + nodes_text(full);
  if (locality.score.is_limited) {
    text += ", counting one node for each of the container's " + std::string(whole_cores_ ? "cores" : "CPUs");
  }
  return text;
}

std::string LocalityModel::rejection(const topolet_candidate& candidate, const CandidateLocality& locality) const {
  const std::size_t width = sdk::size_of(candidate.nodes);
  const bool is_widest = width >= nodes_.positions().size();
  if (is_widest) return candidate_text(candidate, locality) + notes();
  if (width <= 1) return candidate_text(candidate, locality);
  return std::to_string(width) + " nodes together: " + local_text(locality.score.local);
}

std::string LocalityModel::reason(const topolet_candidate& candidate, const CandidateLocality& locality) const {
  std::string reason = candidate_text(candidate, locality);
  std::size_t others = 0;
  for (const auto& [node, text] : node_texts_) {
    if (topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0) continue;
    if (others++ < kMaxComparedNodes) reason.append("; ").append(text);
  }
  if (others > kMaxComparedNodes) reason += "; and " + std::to_string(others - kMaxComparedNodes) + " more nodes";
  return reason += notes();
}

std::string LocalityModel::notes_text(const std::vector<std::string>& notes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(notes.size(), kMaxNotes); ++i) text += "; " + notes[i];
  if (notes.size() > kMaxNotes) text += "; and " + std::to_string(notes.size() - kMaxNotes) + " more notes";
  return text;
}

/// Any candidate with this node tells, because all are cut from the same pool. Of a node in no candidate nothing is
/// known, and all its CPUs count.
sdk::Set LocalityModel::free_on(std::uint32_t node) const {
  const sdk::Set cpus(sdk::nodes(topology_)[node].cpus);
  for (const topolet_candidate& candidate : sdk::candidates(request_)) {
    if (topolet_set_has(candidate.nodes, nodes_.os_index(node)) != 0) return cpus & sdk::Set(candidate.usable);
  }
  return cpus;
}

void LocalityModel::compare_nodes() {
  std::vector<std::pair<double, std::uint32_t>> order;
  for (const std::uint32_t node : nodes_.positions()) order.emplace_back(-nearness_of(node), node);
  std::sort(order.begin(), order.end());
  for (const auto& [_, node] : order) {
    sdk::Set alone;
    alone.insert(nodes_.os_index(node));
    const sdk::Set free = assignable(free_on(node).view());
    node_texts_.emplace_back(node, describe(nodes_text(alone), score({node}, free.view()), free.size()));
  }
}

}  // namespace topolet::gpu
