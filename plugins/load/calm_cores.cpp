#include "plugins/load/calm_cores.hpp"

#include "plugins/load/node_use.hpp"

namespace topolet::load_policy {
namespace {

using sdk::Set;

constexpr std::int64_t kBusyMilli = kWholeCpu / 2;

/// The CPUs of containers that have theirs alone and use them.
Set busy_alone(const topolet_ledger& ledger, const Measured& measured) {
  Set busy;
  const auto entries = sdk::entries(ledger);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (shares_cpus(entries[i])) continue;
    const auto cpus = static_cast<std::int64_t>(sdk::size_of(entries[i].cpus));
    if (cpus > 0 && measured.used_milli(i).value_or(0) >= cpus * kBusyMilli) busy |= entries[i].cpus;
  }
  return busy;
}

}  // namespace

Set cpus_beside_busy_ones(const topolet_topology& topology, const topolet_ledger& ledger, const Measured& measured) {
  const Set busy = busy_alone(ledger, measured);
  Set beside;
  if (busy.empty()) return beside;
  for (std::size_t core = 0; core < topology.core_count; ++core) {
    if (sdk::size_of_both(topology.cores[core], busy.view()) > 0) beside |= topology.cores[core];
  }
  beside -= busy;
  beside -= ledger.exclusive;
  return beside;
}

}  // namespace topolet::load_policy
