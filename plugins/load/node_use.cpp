#include "plugins/load/node_use.hpp"

#include <algorithm>

namespace topolet::load_policy {
namespace {

using sdk::Set;

NodeUse empty_use(const topolet_node& node, const topolet_ledger& ledger, std::optional<std::int64_t> effective) {
  NodeUse use;
  use.os_index = node.os_index;
  const Set cpus = node.memory_only != 0 ? Set() : Set(node.cpus);
  use.pool = cpus & Set(ledger.pool);
  use.nominal_milli = static_cast<std::int64_t>((cpus & Set(ledger.allowed)).size()) * kWholeCpu;
  use.is_effective_known = effective.has_value();
  use.effective_milli = std::min(effective.value_or(use.nominal_milli), use.nominal_milli);
  use.pool_milli = static_cast<std::int64_t>(use.pool.size()) * kWholeCpu;
  if (use.nominal_milli > 0) use.pool_milli = use.pool_milli * use.effective_milli / use.nominal_milli;
  return use;
}

/// What of a node is not of the pool.
struct Apart {
  std::int64_t used_milli = 0;  ///< by containers that have CPUs of their own
  bool is_known = true;         ///< all of these are measured
  Set cpus;                     ///< theirs
};

void add_apart(const topolet_ledger_entry& entry, std::optional<std::int64_t> used, topolet_set cpus_of_node,
               Apart& apart) {
  const auto here = static_cast<std::int64_t>(sdk::size_of_both(entry.cpus, cpus_of_node));
  if (here == 0 || shares_cpus(entry)) return;
  apart.cpus |= entry.cpus;
  const bool may_run = (entry.flags & TOPOLET_ENTRY_STARTED) != 0;
  apart.is_known = apart.is_known && (used.has_value() || !may_run);
  apart.used_milli += used.value_or(0) * here / static_cast<std::int64_t>(sdk::size_of(entry.cpus));
}

/// Counts what others use of the pool, too, such as processes of the system: what is used of the node and not by
/// containers with CPUs of their own. CPUs that are neither theirs nor of the pool may be busy.
void add_others(std::int64_t used_of_node, const Apart& apart, const topolet_node& node, NodeUse& use) {
  if (!apart.is_known) return;
  const auto neither = static_cast<std::int64_t>((Set(node.cpus) - use.pool - apart.cpus).size());
  const std::int64_t others = used_of_node - apart.used_milli - neither * kWholeCpu - use.shared_milli;
  if (others <= 0) return;
  use.shared_milli += others;
  use.assumed_milli = std::max<std::int64_t>(0, use.assumed_milli - others);
}

void add(const topolet_ledger_entry& entry, std::optional<std::int64_t> used, topolet_set cpus_of_node, NodeUse& use) {
  const auto here = static_cast<std::int64_t>(sdk::size_of_both(entry.cpus, cpus_of_node));
  if (here == 0) return;
  const auto all = static_cast<std::int64_t>(sdk::size_of(entry.cpus));
  if (used) use.measured_milli += *used * here / all;
  if (!shares_cpus(entry)) return;
  if (used) {
    use.shared_milli += *used * here / all;
  } else {
    use.assumed_milli += assumed_milli(entry.demand) * here / all;
    ++use.unmeasured;
  }
}

}  // namespace

std::int64_t assumed_milli(const topolet_demand* demand) {
  if (demand == nullptr) return kWholeCpu;
  const std::int64_t wanted = demand->cpu_request_milli > 0 ? demand->cpu_request_milli : kWholeCpu;
  return demand->cpu_limit_milli > 0 ? std::min(wanted, demand->cpu_limit_milli) : wanted;
}

std::string cpus_text(std::int64_t milli) {
  const std::int64_t hundredths = (milli + 5) / 10;
  const std::string rest = std::to_string(hundredths % 100);
  return std::to_string(hundredths / 100) + '.' + (rest.size() == 1 ? "0" : "") + rest;
}

bool shares_cpus(const topolet_ledger_entry& entry) {
  return entry.mode == TOPOLET_MODE_SHARED || entry.mode == TOPOLET_MODE_RESERVED;
}

std::int64_t NodeUse::wanted_milli() const {
  if (effective_milli <= 0) return measured_milli;
  return measured_milli * nominal_milli / effective_milli;
}

std::vector<NodeUse> node_uses(const topolet_topology& topology, const topolet_ledger& ledger,
                               const Measured& measured) {
  const auto nodes = sdk::nodes(topology);
  const auto entries = sdk::entries(ledger);
  std::vector<NodeUse> uses;
  for (std::size_t n = 0; n < nodes.size(); ++n)
    uses.push_back(empty_use(nodes[n], ledger, measured.effective_milli(n)));
  std::vector<Apart> apart(nodes.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::optional<std::int64_t> used = measured.used_milli(i);
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].memory_only != 0) continue;
      add(entries[i], used, nodes[n].cpus, uses[n]);
      add_apart(entries[i], used, nodes[n].cpus, apart[n]);
    }
  }
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto used = nodes[n].memory_only == 0 ? measured.used_of_node_milli(n) : std::nullopt;
    if (used) add_others(*used, apart[n], nodes[n], uses[n]);
  }
  return uses;
}

}  // namespace topolet::load_policy
