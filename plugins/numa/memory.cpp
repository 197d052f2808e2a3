#include "plugins/numa/memory.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
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

NodeMemory::NodeMemory(const topolet_topology& topology, const topolet_ledger& ledger, const ReservedMemory& reserved,
                       bool with_memory, const HugePages& requested_pages)
    : topology_(topology), amounts_(topology.node_count, MemoryAmount{false, 0, 0}) {
  for (const topolet_node& node : sdk::nodes(topology)) cpus_.emplace_back(node.cpus);
  find_local_memory_nodes();
  if (with_memory) count_memory(ledger, reserved);
  for (const auto& [page_bytes, bytes] : requested_pages) count_huge_pages(ledger, page_bytes);
}

void NodeMemory::find_local_memory_nodes() {
  const auto nodes = sdk::nodes(topology_);
  const auto has_memory = [&](std::size_t i) { return nodes[i].memory_only == 0 && nodes[i].memory_bytes > 0; };
  bool any_has_memory = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) any_has_memory = any_has_memory || has_memory(i);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::size_t local = i;
    // Where the size of no node is known, each is taken to have memory of its own.
    if (any_has_memory && !has_memory(i)) {
      for (std::size_t other = 0; other < nodes.size(); ++other) {
        if (!has_memory(other)) continue;
        if (!has_memory(local) || distance(topology_, i, other) < distance(topology_, i, local)) local = other;
      }
    }
    local_memory_nodes_.push_back(local);
    every_node_has_memory_ = every_node_has_memory_ && (local == i || nodes[i].memory_only != 0);
  }
}

template <class Add>
void NodeMemory::divide_among_nodes(const topolet_ledger_entry& entry, std::int64_t bytes, Add add) const {
  const auto nodes = sdk::nodes(topology_);
  const bool bound = sdk::size_of(entry.mems) > 0;
  const auto share_of = [&](std::size_t i) -> std::int64_t {
    if (bound) return topolet_set_has(entry.mems, nodes[i].os_index);
    return nodes[i].memory_only != 0 ? 0 : static_cast<std::int64_t>(cpus_[i].count_in(entry.cpus));
  };
  std::int64_t all = 0;
  std::vector<std::int64_t> shares;
  shares.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) all += shares.emplace_back(share_of(i));
  for (std::size_t i = 0; i < shares.size() && all > 0; ++i) {
    if (shares[i] > 0) add(i, bytes / all * shares[i] + bytes % all * shares[i] / all);
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
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    // The host has counted known requests. Of a bound container without one, its limit is the best estimate.
    if (entry.demand == nullptr || entry.demand->memory_request_bytes > 0 || sdk::size_of(entry.mems) == 0) continue;
    divide_among_nodes(entry, memory_of(*entry.demand),
                       [&](std::size_t i, std::int64_t part) { used[i] = saturating_add(used[i], part); });
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].memory_bytes <= 0) continue;
    std::int64_t capacity = nodes[i].memory_bytes - std::min(reserved.of(nodes[i].os_index), nodes[i].memory_bytes);
    for (std::uint32_t p = 0; p < nodes[i].huge_pages_count; ++p) {
      const topolet_huge_pages& pages =
          *TOPOLET_AT(topolet_huge_pages, nodes[i].huge_pages, nodes[i].huge_pages_stride, p);
      if (pages.count > 0 && pages.page_bytes > 0)
        capacity -= std::min(capacity / pages.page_bytes, pages.count) * pages.page_bytes;
    }
    amounts_[i] = {true, capacity, non_negative(capacity - std::min(capacity, used[i]))};
  }
}

void NodeMemory::count_huge_pages(const topolet_ledger& ledger, std::int64_t page_bytes) {
  const auto nodes = sdk::nodes(topology_);
  std::vector<MemoryAmount> amounts(nodes.size());
  bool any_page = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::uint32_t p = 0; p < nodes[i].huge_pages_count; ++p) {
      const topolet_huge_pages& pages =
          *TOPOLET_AT(topolet_huge_pages, nodes[i].huge_pages, nodes[i].huge_pages_stride, p);
      if (pages.page_bytes != page_bytes) continue;
      any_page = true;
      const std::int64_t count =
          std::min(non_negative(pages.count), std::numeric_limits<std::int64_t>::max() / page_bytes);
      amounts[i].capacity_bytes = amounts[i].free_bytes = count * page_bytes;
    }
  }
  // Pages of a size that the machine does not report are not limited.
  if (!any_page) return;
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    if (entry.demand == nullptr || entry.demand->huge_page_limit_count == 0) continue;
    const HugePages held = huge_pages_of(*entry.demand);
    const auto found = held.find(page_bytes);
    if (found == held.end()) continue;
    divide_among_nodes(entry, found->second, [&](std::size_t i, std::int64_t part) {
      amounts[i].free_bytes = non_negative(amounts[i].free_bytes - std::min(amounts[i].free_bytes, part));
    });
  }
  huge_pages_[page_bytes] = std::move(amounts);
}

MemoryAmount NodeMemory::sum(const std::vector<MemoryAmount>& amounts, const std::vector<std::uint32_t>& nodes) const {
  MemoryAmount all;
  all.known = !nodes.empty();
  const auto add = [&](std::size_t node) {
    all.known = all.known && amounts[node].known;
    all.capacity_bytes = saturating_add(all.capacity_bytes, amounts[node].capacity_bytes);
    all.free_bytes = saturating_add(all.free_bytes, amounts[node].free_bytes);
  };
  if (every_node_has_memory_) {
    for (const std::uint32_t node : nodes) add(node);
    return all;
  }
  std::vector<std::size_t> memory_nodes;
  for (const std::uint32_t node : nodes) memory_nodes.push_back(local_memory_nodes_[node]);
  std::sort(memory_nodes.begin(), memory_nodes.end());
  memory_nodes.erase(std::unique(memory_nodes.begin(), memory_nodes.end()), memory_nodes.end());
  for (const std::size_t node : memory_nodes) add(node);
  return all;
}

MemoryAmount NodeMemory::amount(const std::vector<std::uint32_t>& nodes) const { return sum(amounts_, nodes); }

MemoryAmount NodeMemory::huge_pages(const std::vector<std::uint32_t>& nodes, std::int64_t page_bytes) const {
  const auto found = huge_pages_.find(page_bytes);
  return found == huge_pages_.end() ? MemoryAmount{false, 0, 0} : sum(found->second, nodes);
}

MemoryAmount NodeMemory::huge_pages_on(std::size_t node, std::int64_t page_bytes) const {
  const auto found = huge_pages_.find(page_bytes);
  return found == huge_pages_.end() ? MemoryAmount{false, 0, 0} : found->second[node];
}

namespace {

/// Memory nodes that are added one after the other until they hold what is requested.
class Binding {
 public:
  Binding(const NodeMemory& memory, const BindingRequest& request) : memory_(memory), request_(request) {}

  void add(std::size_t node, std::uint32_t os_index) {
    nodes_.insert(os_index);
    add_to(total_, memory_.amount_on(node));
    for (const auto& [page_bytes, _] : request_.huge_pages) {
      add_to(huge_pages_[page_bytes], memory_.huge_pages_on(node, page_bytes));
    }
  }

  /// Whether the node has some of what is requested and still missing.
  bool would_gain(std::size_t node) const {
    if (!total_.fits(request_.bytes) && memory_.amount_on(node).fits(1)) return true;
    return std::any_of(request_.huge_pages.begin(), request_.huge_pages.end(), [&](const auto& pages) {
      return !has_pages(pages.first, pages.second) && memory_.huge_pages_on(node, pages.first).fits(1);
    });
  }

  bool is_enough() const {
    const bool has_all_pages = std::all_of(request_.huge_pages.begin(), request_.huge_pages.end(),
                                           [this](const auto& pages) { return has_pages(pages.first, pages.second); });
    return !nodes_.empty() && total_.fits(request_.bytes) && has_all_pages;
  }

  const Set& nodes() const { return nodes_; }

 private:
  static void add_to(MemoryAmount& total, const MemoryAmount& more) {
    total.known = total.known && more.known;
    total.free_bytes = saturating_add(total.free_bytes, more.free_bytes);
  }
  bool has_pages(std::int64_t page_bytes, std::int64_t bytes) const {
    const auto found = huge_pages_.find(page_bytes);
    return found != huge_pages_.end() && found->second.fits(bytes);
  }

  const NodeMemory& memory_;
  const BindingRequest& request_;
  MemoryAmount total_;
  std::map<std::int64_t, MemoryAmount> huge_pages_;  ///< by page size in bytes
  Set nodes_;
};

/// Whether a package has CPUs of the node and some of `cpus`.
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
    others.emplace_back(far, cpu_nodes.empty() ? -memory.amount_on(i).free_bytes : 0, i);
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
