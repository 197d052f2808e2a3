#include "plugins/numa/memory.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>

#include "plugins/numa/amounts.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;

[[noreturn]] void refuse_reserved(std::string_view part) {
  throw std::invalid_argument("reserved-memory: '" + std::string(part.substr(0, 64)) +
                              "' is no amount; write one for each node (1Gi), or NODE:AMOUNT by comma (0:1Gi,1:512Mi)");
}

std::int64_t amount(std::string_view text, std::string_view part) {
  const std::optional<std::int64_t> bytes = parse_bytes(text);
  if (!bytes) refuse_reserved(part);
  return *bytes;
}

std::uint32_t distance(const topolet_topology& topology, std::size_t from, std::size_t to) {
  return topology.distances[from * topology.node_count + to];
}

std::int64_t add_up(std::int64_t a, std::int64_t b) {
  return a > std::numeric_limits<std::int64_t>::max() - b ? std::numeric_limits<std::int64_t>::max() : a + b;
}

std::int64_t positive(std::int64_t bytes) { return std::max<std::int64_t>(0, bytes); }

}  // namespace

ReservedMemory::ReservedMemory(std::string_view text) {
  if (text.empty()) return;
  if (text.find(':') == std::string_view::npos) {
    each_ = amount(text, text);
    return;
  }
  if (text.back() == ',') refuse_reserved(text);
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), part.size() + 1));
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) refuse_reserved(part);
    std::uint32_t node = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + colon, node);
    if (error != std::errc() || rest != part.data() + colon) refuse_reserved(part);
    if (!by_node_.emplace(node, amount(part.substr(colon + 1), part)).second) {
      throw std::invalid_argument("reserved-memory: node " + std::to_string(node) + " is named twice");
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
    if (bytes && *bytes > 0) pages[*bytes] = add_up(pages[*bytes], limit.bytes);
  }
  return pages;
}

std::int64_t memory_of(const topolet_demand& demand) {
  return positive(demand.memory_request_bytes > 0 ? demand.memory_request_bytes : demand.memory_limit_bytes);
}

NodeMemory::NodeMemory(const topolet_topology& topology, const topolet_ledger& ledger, const ReservedMemory& reserved,
                       bool with_memory, const HugePages& asked_pages)
    : topology_(topology), rooms_(topology.node_count, Room{false, 0, 0}) {
  find_homes();
  if (with_memory) count_memory(ledger, reserved);
  for (const auto& [page_bytes, asked] : asked_pages) count_huge_pages(ledger, page_bytes);
}

void NodeMemory::find_homes() {
  const auto nodes = sdk::nodes(topology_);
  const auto has_memory = [&](std::size_t i) { return nodes[i].memory_only == 0 && nodes[i].memory_bytes > 0; };
  bool any = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) any = any || has_memory(i);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::size_t home = i;
    // Where no node tells its size, they all have some.
    if (any && !has_memory(i)) {
      for (std::size_t other = 0; other < nodes.size(); ++other) {
        if (!has_memory(other)) continue;
        if (!has_memory(home) || distance(topology_, i, other) < distance(topology_, i, home)) home = other;
      }
    }
    homes_.push_back(home);
    homes_are_own_ = homes_are_own_ && (home == i || nodes[i].memory_only != 0);
  }
}

template <class Add>
void NodeMemory::divide(const topolet_ledger_entry& entry, std::int64_t bytes, Add add) const {
  const auto nodes = sdk::nodes(topology_);
  const bool bound = sdk::size_of(entry.mems) > 0;
  const auto share_of = [&](std::size_t i) -> std::int64_t {
    if (bound) return topolet_set_has(entry.mems, nodes[i].os_index);
    return nodes[i].memory_only != 0 ? 0 : static_cast<std::int64_t>(sdk::size_of_both(entry.cpus, nodes[i].cpus));
  };
  std::int64_t all = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) all += share_of(i);
  for (std::size_t i = 0; i < nodes.size() && all > 0; ++i) {
    const std::int64_t share = share_of(i);
    if (share > 0) add(i, bytes / all * share + bytes % all * share / all);
  }
}

void NodeMemory::count_memory(const topolet_ledger& ledger, const ReservedMemory& reserved) {
  const auto nodes = sdk::nodes(topology_);
  const auto demands = sdk::node_demands(ledger);
  std::vector<std::int64_t> used(nodes.size(), 0);
  for (std::size_t i = 0; i < std::min(demands.size(), used.size()); ++i) {
    // What runs on the CPUs of a node without memory has it elsewhere.
    used[homes_[i]] = add_up(used[homes_[i]], positive(demands[i].memory_request_bytes));
  }
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    // The host counts known requests only; of the others a bound container's limit is what is known.
    if (entry.demand == nullptr || entry.demand->memory_request_bytes > 0 || sdk::size_of(entry.mems) == 0) continue;
    divide(entry, memory_of(*entry.demand), [&](std::size_t i, std::int64_t part) { used[i] = add_up(used[i], part); });
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
    rooms_[i] = {true, capacity, positive(capacity - std::min(capacity, used[i]))};
  }
}

void NodeMemory::count_huge_pages(const topolet_ledger& ledger, std::int64_t page_bytes) {
  const auto nodes = sdk::nodes(topology_);
  std::vector<Room> rooms(nodes.size());
  bool any = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (std::uint32_t p = 0; p < nodes[i].huge_pages_count; ++p) {
      const topolet_huge_pages& pages =
          *TOPOLET_AT(topolet_huge_pages, nodes[i].huge_pages, nodes[i].huge_pages_stride, p);
      if (pages.page_bytes != page_bytes) continue;
      any = true;
      const std::int64_t count = std::min(positive(pages.count), std::numeric_limits<std::int64_t>::max() / page_bytes);
      rooms[i].capacity = rooms[i].free = count * page_bytes;
    }
  }
  // A machine that names no page of this size does not limit them.
  if (!any) return;
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    if (entry.demand == nullptr || entry.demand->huge_page_limit_count == 0) continue;
    const HugePages held = huge_pages_of(*entry.demand);
    const auto found = held.find(page_bytes);
    if (found == held.end()) continue;
    divide(entry, found->second, [&](std::size_t i, std::int64_t part) {
      rooms[i].free = positive(rooms[i].free - std::min(rooms[i].free, part));
    });
  }
  huge_pages_[page_bytes] = std::move(rooms);
}

Room NodeMemory::sum(const std::vector<Room>& rooms, const std::vector<std::uint32_t>& nodes) const {
  Room all;
  all.known = !nodes.empty();
  const auto add = [&](std::size_t home) {
    all.known = all.known && rooms[home].known;
    all.capacity = add_up(all.capacity, rooms[home].capacity);
    all.free = add_up(all.free, rooms[home].free);
  };
  if (homes_are_own_) {
    for (const std::uint32_t node : nodes) add(node);
    return all;
  }
  std::vector<std::size_t> homes;
  for (const std::uint32_t node : nodes) homes.push_back(homes_[node]);
  std::sort(homes.begin(), homes.end());
  homes.erase(std::unique(homes.begin(), homes.end()), homes.end());
  for (const std::size_t home : homes) add(home);
  return all;
}

Room NodeMemory::room(const std::vector<std::uint32_t>& nodes) const { return sum(rooms_, nodes); }

Room NodeMemory::huge_page_room(const std::vector<std::uint32_t>& nodes, std::int64_t page_bytes) const {
  const auto found = huge_pages_.find(page_bytes);
  return found == huge_pages_.end() ? Room{false, 0, 0} : sum(found->second, nodes);
}

std::optional<Set> memory_nodes(const topolet_topology& topology, const NodeMemory& memory, std::int64_t asked,
                                topolet_set cpus, topolet_set next, topolet_set open) {
  const auto nodes = sdk::nodes(topology);
  const auto is_open = [&](std::size_t i) { return topolet_set_has(open, nodes[i].os_index) != 0; };
  bool dram = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) dram = dram || (is_open(i) && nodes[i].memory_only == 0);
  const auto usable = [&](std::size_t i) { return is_open(i) && (nodes[i].memory_only == 0 || !dram); };

  // Nearest usable node of each node that the CPUs are of, then the others by how far they are from those.
  std::vector<std::size_t> from;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].memory_only == 0 && sdk::size_of_both(nodes[i].cpus, cpus) > 0) from.push_back(i);
  }
  if (from.empty()) return std::nullopt;
  std::vector<std::size_t> chosen;
  std::vector<std::pair<std::uint64_t, std::size_t>> others;
  for (const std::size_t cpu_node : from) {
    std::optional<std::size_t> best;
    const std::size_t home = memory.home(cpu_node);
    if (usable(home)) best = home;
    for (std::size_t i = 0; i < nodes.size() && !usable(home); ++i) {
      if (usable(i) && (!best || distance(topology, cpu_node, i) < distance(topology, cpu_node, *best))) best = i;
    }
    if (best && std::find(chosen.begin(), chosen.end(), *best) == chosen.end()) chosen.push_back(*best);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!usable(i) || memory.home(i) != i || std::find(chosen.begin(), chosen.end(), i) != chosen.end()) continue;
    std::uint64_t far = topolet_set_has(next, nodes[i].os_index) != 0 ? 0 : std::uint64_t{1} << 40U;
    for (const std::size_t cpu_node : from) far += distance(topology, cpu_node, i);
    others.emplace_back(far, i);
  }
  std::sort(others.begin(), others.end());

  Room room;
  Set mems;
  const auto add = [&](std::size_t i) {
    const Room& more = memory.room_of(i);
    room.known = room.known && more.known;
    room.free = add_up(room.free, more.free);
    mems.insert(nodes[i].os_index);
  };
  for (const std::size_t i : chosen) add(i);
  for (auto other = others.begin(); !room.holds(asked) && other != others.end(); ++other) add(other->second);
  if (mems.empty() || !room.holds(asked)) return std::nullopt;
  return mems;
}

}  // namespace topolet::numa
