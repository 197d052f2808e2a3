#include "plugins/numa/memory.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "plugins/numa/quantities.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;

[[noreturn]] void throw_bad_amount(std::string_view part) {
  throw std::invalid_argument("reserved-memory: '" + std::string(part.substr(0, 64)) +
                              "' is not an amount of memory; write one amount for every node (1Gi) or a "
                              "comma-separated list of NODE:AMOUNT (0:1Gi,1:512Mi)");
}

std::int64_t amount_in(std::string_view text, std::string_view part) {
  const std::optional<std::int64_t> bytes = parse_bytes(text);
  if (!bytes) throw_bad_amount(part);
  return *bytes;
}

std::uint32_t distance(const topolet_topology& topology, std::size_t from, std::size_t to) {
  return topology.distances[from * topology.node_count + to];
}

std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  return a > std::numeric_limits<std::int64_t>::max() - b ? std::numeric_limits<std::int64_t>::max() : a + b;
}

/// Returns the host's share of memory for the `position`th of the nodes that a container's memory is bound to.
std::int64_t equal_part(std::int64_t bytes, std::size_t position, std::size_t nodes) {
  const auto count = static_cast<std::int64_t>(nodes);
  const auto up_to = [&](std::int64_t parts) { return bytes / count * parts + bytes % count * parts / count; };
  const auto before = static_cast<std::int64_t>(position);
  return up_to(before + 1) - up_to(before);
}

void book(const std::vector<std::size_t>& nodes, std::int64_t bytes, NodeBooking& booking) {
  if (nodes.size() == 1) booking.book(nodes.front(), bytes);
  if (nodes.size() > 1) booking.book(nodes, bytes);
}

}  // namespace

ReservedMemory::ReservedMemory(std::string_view text) {
  if (text.empty()) return;
  if (text.find(':') == std::string_view::npos) {
    each_ = amount_in(text, text);
    return;
  }
  if (text.back() == ',') throw_bad_amount(text);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) throw_bad_amount(part);
    std::uint32_t node = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + colon, node);
    if (error != std::errc() || rest != part.data() + colon) throw_bad_amount(part);
    if (!by_node_.emplace(node, amount_in(part.substr(colon + 1), part)).second) {
      throw std::invalid_argument("reserved-memory: node " + std::to_string(node) +
                                  " is listed twice; give each node one amount");
    }
  }
}

std::int64_t ReservedMemory::of(std::uint32_t os_index) const {
  const auto found = by_node_.find(os_index);
  return found == by_node_.end() ? each_ : found->second;
}

std::vector<std::uint32_t> ReservedMemory::nodes_missing_on(const topolet_topology& machine) const {
  std::vector<std::uint32_t> missing;
  for (const auto& [os_index, bytes] : by_node_) {
    bool is_there = false;
    for (std::uint32_t i = 0; i < machine.node_count; ++i)
      is_there = is_there || TOPOLET_AT(topolet_node, machine.nodes, machine.node_stride, i)->os_index == os_index;
    if (!is_there) missing.push_back(os_index);
  }
  return missing;
}

HugePages huge_pages_of(const topolet_demand& demand) {
  HugePages pages;
  for (std::uint32_t i = 0; i < demand.huge_page_limit_count; ++i) {
    const topolet_huge_page_limit& limit =
        *TOPOLET_AT(topolet_huge_page_limit, demand.huge_page_limits, demand.huge_page_limit_stride, i);
    const std::string_view size = sdk::text(limit.page_size);
    // The CRI writes "2MB" and means 2 MiB.
    if (size.size() < 2 || size.back() != 'B' || limit.bytes <= 0) continue;
    std::string binary(size.substr(0, size.size() - 1));
    if (binary.back() == 'k') binary.back() = 'K';
    const std::optional<std::int64_t> bytes = parse_bytes(binary + 'i');
    if (bytes && *bytes > 0) pages[*bytes] = saturating_add(pages[*bytes], limit.bytes);
  }
  return pages;
}

std::int64_t memory_of(const topolet_demand& demand) {
  return non_negative(demand.memory_request_bytes > 0 ? demand.memory_request_bytes : demand.memory_limit_bytes);
}

MemoryAmount AmountByNode::on(const std::vector<std::size_t>& nodes) const {
  MemoryAmount all;
  all.known = !nodes.empty();
  for (const std::size_t node : nodes) {
    all.known = all.known && known[node];
    all.capacity_bytes = saturating_add(all.capacity_bytes, capacity_bytes[node]);
  }
  if (all.known) all.free_bytes = booking.free_on(nodes);
  return all;
}

NodeMemory::NodeMemory(const topolet_topology& topology, const topolet_ledger& ledger, const ReservedMemory& reserved,
                       bool with_memory, const HugePages& requested_pages)
    : topology_(topology), without_memory_(topology) {
  const std::size_t count = topology.node_count;
  memory_ = {std::vector<bool>(count, false), std::vector<std::int64_t>(count, 0), {}};
  for (const topolet_node& node : sdk::nodes(topology)) cpus_.emplace_back(node.cpus);
  find_local_memory_nodes();
  if (with_memory) count_memory(ledger, reserved);
  for (const auto& [page_bytes, bytes] : requested_pages) count_huge_pages(ledger, page_bytes);
}

void NodeMemory::find_local_memory_nodes() {
  const auto nodes = sdk::nodes(topology_);
  const auto has_memory = [&](std::size_t i) { return sdk::NodesWithoutMemory::has_memory(nodes[i]); };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::size_t local = i;
    if (without_memory_.sizes_are_known() && !has_memory(i)) {
      for (std::size_t other = 0; other < nodes.size(); ++other) {
        if (!has_memory(other)) continue;
        if (!has_memory(local) || distance(topology_, i, other) < distance(topology_, i, local)) local = other;
      }
    }
    local_memory_nodes_.push_back(local);
  }
}

std::vector<std::size_t> NodeMemory::bound_nodes(const topolet_ledger_entry& entry) const {
  std::vector<std::size_t> bound;
  const auto nodes = sdk::nodes(topology_);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (topolet_set_has(entry.mems, nodes[i].os_index) != 0) bound.push_back(i);
  }
  return bound;
}

void NodeMemory::book_beside_cpus(const topolet_ledger_entry& entry, std::int64_t bytes, NodeBooking& booking) const {
  const auto nodes = sdk::nodes(topology_);
  std::vector<std::int64_t> cpus;
  cpus.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    cpus.push_back(nodes[i].memory_only != 0 ? 0 : static_cast<std::int64_t>(cpus_[i].count_in(entry.cpus)));
  }
  const std::int64_t all = std::accumulate(cpus.begin(), cpus.end(), std::int64_t{0});
  for (std::size_t i = 0; i < cpus.size() && all > 0; ++i) {
    if (cpus[i] > 0) booking.book(i, bytes / all * cpus[i] + bytes % all * cpus[i] / all);
  }
}

void NodeMemory::count_memory(const topolet_ledger& ledger, const ReservedMemory& reserved) {
  const auto nodes = sdk::nodes(topology_);
  const auto demands = sdk::node_demands(ledger);
  std::vector<std::int64_t> used(nodes.size(), 0);
  for (std::size_t i = 0; i < std::min(demands.size(), used.size()); ++i) {
    // Containers on the CPUs of a node without memory use the memory of another node.
    used[local_memory_nodes_[i]] =
        saturating_add(used[local_memory_nodes_[i]], non_negative(demands[i].memory_request_bytes));
  }
  std::map<std::vector<std::size_t>, std::int64_t> by_nodes;
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    const std::size_t bound_to = sdk::size_of(entry.mems);
    // The host has counted known requests. Of a bound container without one, its limit is the best estimate.
    const bool is_counted = entry.demand != nullptr && entry.demand->memory_request_bytes > 0;
    if (entry.demand == nullptr || bound_to == 0 || (is_counted && bound_to == 1)) continue;
    const std::int64_t bytes = memory_of(*entry.demand);
    if (bytes == 0) continue;
    const std::vector<std::size_t> bound = bound_nodes(entry);
    for (std::size_t i = 0; i < bound.size() && is_counted; ++i) {
      std::int64_t& here = used[local_memory_nodes_[bound[i]]];
      here = non_negative(here - equal_part(bytes, i, bound.size()));
    }
    std::int64_t& together = by_nodes[local_to(bound)];
    together = saturating_add(together, bytes);
  }
  memory_.booking = NodeBooking(room_beside(used, reserved));
  for (const auto& [bound, bytes] : by_nodes) book(bound, bytes, memory_.booking);
}

std::vector<std::int64_t> NodeMemory::room_beside(const std::vector<std::int64_t>& used,
                                                  const ReservedMemory& reserved) {
  const auto nodes = sdk::nodes(topology_);
  std::vector<std::int64_t> room(nodes.size(), NodeBooking::kUnlimited);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].memory_bytes <= 0) continue;
    std::int64_t capacity = nodes[i].memory_bytes - std::min(reserved.of(nodes[i].os_index), nodes[i].memory_bytes);
    for (std::uint32_t p = 0; p < nodes[i].huge_pages_count; ++p) {
      const topolet_huge_pages& pages =
          *TOPOLET_AT(topolet_huge_pages, nodes[i].huge_pages, nodes[i].huge_pages_stride, p);
      if (pages.count > 0 && pages.page_bytes > 0)
        capacity -= std::min(capacity / pages.page_bytes, pages.count) * pages.page_bytes;
    }
    memory_.known[i] = true;
    memory_.capacity_bytes[i] = capacity;
    room[i] = capacity - std::min(capacity, used[i]);
  }
  return room;
}

void NodeMemory::count_huge_pages(const topolet_ledger& ledger, std::int64_t page_bytes) {
  const auto nodes = sdk::nodes(topology_);
  std::vector<std::int64_t> capacity(nodes.size(), 0);
  bool any_page = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::uint32_t p = 0; p < nodes[i].huge_pages_count; ++p) {
      const topolet_huge_pages& pages =
          *TOPOLET_AT(topolet_huge_pages, nodes[i].huge_pages, nodes[i].huge_pages_stride, p);
      if (pages.page_bytes != page_bytes) continue;
      any_page = true;
      const std::int64_t count =
          std::min(non_negative(pages.count), std::numeric_limits<std::int64_t>::max() / page_bytes);
      capacity[i] = count * page_bytes;
    }
  }
  // Pages of a size that the machine does not report are not limited.
  if (!any_page) return;
  NodeBooking booking(capacity);
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    if (entry.demand == nullptr || entry.demand->huge_page_limit_count == 0) continue;
    const HugePages held = huge_pages_of(*entry.demand);
    const auto found = held.find(page_bytes);
    if (found == held.end()) continue;
    if (sdk::size_of(entry.mems) == 0) {
      book_beside_cpus(entry, found->second, booking);
    } else {
      book(bound_nodes(entry), found->second, booking);
    }
  }
  huge_pages_[page_bytes] = {std::vector<bool>(nodes.size(), true), std::move(capacity), std::move(booking)};
}

std::vector<std::size_t> NodeMemory::memory_nodes_of(const std::vector<std::uint32_t>& nodes) const {
  std::vector<std::size_t> memory_nodes(nodes.begin(), nodes.end());
  return without_memory_.nodes().empty() ? memory_nodes : local_to(memory_nodes);
}

std::vector<std::size_t> NodeMemory::local_to(std::vector<std::size_t> nodes) const {
  for (std::size_t& node : nodes) node = local_memory_nodes_[node];
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

MemoryAmount NodeMemory::amount(const std::vector<std::uint32_t>& nodes) const {
  return amount_on(memory_nodes_of(nodes));
}

MemoryAmount NodeMemory::huge_pages(const std::vector<std::uint32_t>& nodes, std::int64_t page_bytes) const {
  return huge_pages_on(memory_nodes_of(nodes), page_bytes);
}

MemoryAmount NodeMemory::huge_pages_on(const std::vector<std::size_t>& nodes, std::int64_t page_bytes) const {
  const auto found = huge_pages_.find(page_bytes);
  return found == huge_pages_.end() ? MemoryAmount{false, 0, 0} : found->second.on(nodes);
}

namespace {

/// Memory nodes that are added one after the other until they hold what is requested.
class Binding {
 public:
  Binding(const NodeMemory& memory, const BindingRequest& request) : memory_(memory), request_(request) {}

  void add(std::size_t node, std::uint32_t os_index) {
    os_indices_.insert(os_index);
    nodes_.push_back(node);
  }

  /// Returns true if the node would add to a resource that is requested and still missing.
  bool would_gain(std::size_t node) const {
    std::vector<std::size_t> with = nodes_;
    with.push_back(node);
    const auto gains = [](const MemoryAmount& now, const MemoryAmount& then, std::int64_t bytes) {
      return !now.fits(bytes) && (!then.known || then.free_bytes > now.free_bytes);
    };
    if (gains(memory_.amount_on(nodes_), memory_.amount_on(with), request_.bytes)) return true;
    return std::any_of(request_.huge_pages.begin(), request_.huge_pages.end(), [&](const auto& pages) {
      const auto& [size, bytes] = pages;
      return gains(memory_.huge_pages_on(nodes_, size), memory_.huge_pages_on(with, size), bytes);
    });
  }

  bool is_enough() const {
    if (nodes_.empty() || !memory_.amount_on(nodes_).fits(request_.bytes)) return false;
    return std::all_of(request_.huge_pages.begin(), request_.huge_pages.end(), [this](const auto& pages) {
      return memory_.huge_pages_on(nodes_, pages.first).fits(pages.second);
    });
  }

  const Set& nodes() const { return os_indices_; }

 private:
  const NodeMemory& memory_;
  const BindingRequest& request_;
  std::vector<std::size_t> nodes_;  ///< by position
  Set os_indices_;
};

/// Returns true if some package has CPUs of the node and some of `cpus`.
bool share_a_package(const topolet_topology& topology, const topolet_node& node, topolet_set cpus) {
  for (std::size_t i = 0; i < topology.package_count; ++i) {
    const topolet_set package = topology.packages[i];
    if (sdk::size_of_both(package, node.cpus) > 0 && sdk::size_of_both(package, cpus) > 0) return true;
  }
  return false;
}

}  // namespace

std::optional<Set> choose_memory_nodes(const topolet_topology& topology, const NodeMemory& memory,
                                       const BindingRequest& request) {
  const auto nodes = sdk::nodes(topology);
  const auto is_allowed = [&](std::size_t i) { return topolet_set_has(request.allowed, nodes[i].os_index) != 0; };
  bool any_dram = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) any_dram = any_dram || (is_allowed(i) && nodes[i].memory_only == 0);
  const auto is_usable = [&](std::size_t i) { return is_allowed(i) && (nodes[i].memory_only == 0 || !any_dram); };

  std::vector<std::size_t> cpu_nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].memory_only == 0 && sdk::size_of_both(nodes[i].cpus, request.cpus) > 0) cpu_nodes.push_back(i);
  }
  std::vector<std::size_t> chosen;
  for (const std::size_t cpu_node : cpu_nodes) {
    std::optional<std::size_t> nearest;
    const std::size_t local = memory.local_memory_node(cpu_node);
    if (is_usable(local)) nearest = local;
    for (std::size_t i = 0; i < nodes.size() && !is_usable(local); ++i) {
      if (!is_usable(i)) continue;
      if (!nearest || distance(topology, cpu_node, i) < distance(topology, cpu_node, *nearest)) nearest = i;
    }
    if (nearest && std::find(chosen.begin(), chosen.end(), *nearest) == chosen.end()) chosen.push_back(*nearest);
  }

  // By distance from all CPU nodes, preferred nodes first. From CPUs outside any node no distance is known: the nodes
  // of their package first, and the emptiest of these.
  std::vector<std::tuple<std::uint64_t, std::int64_t, std::size_t>> others;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), i) != chosen.end();
    if (!is_usable(i) || memory.local_memory_node(i) != i || is_chosen) continue;
    std::uint64_t far = topolet_set_has(request.preferred, nodes[i].os_index) != 0 ? 0 : std::uint64_t{1} << 40U;
    for (const std::size_t cpu_node : cpu_nodes) far += distance(topology, cpu_node, i);
    if (cpu_nodes.empty()) far += share_a_package(topology, nodes[i], request.cpus) ? 0 : 1;
    others.emplace_back(far, cpu_nodes.empty() ? -memory.amount_on({i}).free_bytes : 0, i);
  }
  std::sort(others.begin(), others.end());

  Binding binding(memory, request);
  for (const std::size_t i : chosen) binding.add(i, nodes[i].os_index);
  for (const auto& [far, emptier, i] : others) {
    if (binding.is_enough()) break;
    if (binding.nodes().empty() || binding.would_gain(i)) binding.add(i, nodes[i].os_index);
  }
  if (!binding.is_enough()) return std::nullopt;
  return binding.nodes();
}

}  // namespace topolet::numa
