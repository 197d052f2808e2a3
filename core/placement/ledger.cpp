#include "core/placement/ledger.hpp"

#include <algorithm>
#include <utility>

#include "core/base/prefix.hpp"

namespace topolet {
namespace {

CpuSet pool_of(const LedgerRules& rules, const CpuSet& exclusive, const CpuSet& withheld) {
  return rules.allowed - rules.reserved - rules.isolated - rules.outside - exclusive - withheld;
}

/// A foreign container's CPUs are booked only where the kubelet gave it some for itself.
bool holds_exclusively(const Placement& placement) {
  return placement.mode == Mode::kExclusive || placement.mode == Mode::kForeign;
}

}  // namespace

Ledger::Ledger(LedgerRules rules, std::uint64_t generation)
    : rules_(std::move(rules)), generation_(generation), pool_(pool_of(rules_, {}, {})) {}

const Holding* Ledger::find(const ContainerKey& key) const {
  const auto found = holdings_.find(key);
  return found == holdings_.end() ? nullptr : &found->second;
}

Holding* Ledger::mutable_find(const ContainerKey& key) {
  const auto found = holdings_.find(key);
  return found == holdings_.end() ? nullptr : &found->second;
}

const Holding* Ledger::find_by_container(const std::string& container_id) const {
  const auto found = find_by_prefix(by_container_, container_id);
  return found == by_container_.end() ? nullptr : find(found->second);
}

std::vector<ContainerKey> Ledger::in_sandbox(const std::string& sandbox_id) const {
  std::vector<ContainerKey> keys;
  for (const auto& [key, holding] : holdings_) {
    if (key.sandbox_id == sandbox_id) keys.push_back(key);
  }
  return keys;
}

const Holding* Ledger::find_crashed(const ContainerKey& key) const {
  const ContainerKey first{key.pod_uid, key.name, 0, {}};
  for (auto it = holdings_.lower_bound(first); it != holdings_.end(); ++it) {
    if (it->first.pod_uid != key.pod_uid || it->first.name != key.name) break;
    // Pods made by hand may have no uid.
    if (key.pod_uid.empty() && it->first.sandbox_id != key.sandbox_id) continue;
    if (it->second.state == HoldingState::kCrashed && it->first != key) return &it->second;
  }
  return nullptr;
}

LedgerView Ledger::view(const ContainerKey* without) const {
  LedgerView view;
  view.generation = generation_;
  view.allowed = rules_.allowed;
  view.reserved = rules_.reserved;
  view.exclusive = rules_.outside;
  for (const auto& [key, holding] : holdings_) {
    if (without != nullptr && key == *without) continue;
    if (holds_exclusively(holding.placement)) view.exclusive |= holding.placement.cpus;
    view.withheld |= holding.placement.withheld;
    view.entries.push_back({key, holding.workload.qos, holding.placement, holding.workload.demand, holding.within,
                            holding.conflict || !holding.workload.kubelet_cpus.empty(), holding.workload.settings});
  }
  view.pool = pool_of(rules_, view.exclusive, view.withheld);
  view.isolated = (rules_.isolated & rules_.allowed) - rules_.reserved - view.exclusive - view.withheld;
  return view;
}

CpuSet Ledger::shared_cpus(Mode mode, const CpuSet& within, const CpuSet& pool, const CpuSet& reserved,
                           bool keep_within) {
  const CpuSet open = mode == Mode::kReserved ? pool | reserved : pool;
  const CpuSet inside = within & open;
  return inside.empty() && !keep_within ? open : inside;
}

std::vector<ContainerKey> Ledger::put(Holding holding) {
  const ContainerKey key = holding.workload.key;
  if (const Holding* before = find(key); before != nullptr) by_container_.erase(before->container_id);
  if (!holding.container_id.empty()) by_container_[holding.container_id] = key;
  holding.workload.env.clear();
  holdings_[key] = std::move(holding);
  return recompute(&key);
}

std::vector<ContainerKey> Ledger::release(const ContainerKey& key) {
  const auto found = holdings_.find(key);
  if (found == holdings_.end()) return {};
  by_container_.erase(found->second.container_id);
  holdings_.erase(found);
  return recompute(nullptr);
}

std::vector<ContainerKey> Ledger::set_rules(LedgerRules rules) {
  const CpuSet came = rules.allowed - rules_.allowed;
  for (auto& [key, holding] : holdings_) {
    if (holding.placement.mode == Mode::kExclusive) holding.came |= came;
  }
  rules_ = std::move(rules);
  return recompute(nullptr);
}

std::vector<ContainerKey> Ledger::recompute(const ContainerKey* changed) {
  ++generation_;
  CpuSet exclusive;
  CpuSet withheld;
  for (const auto& [key, holding] : holdings_) {
    if (holds_exclusively(holding.placement)) exclusive |= holding.placement.cpus;
    withheld |= holding.placement.withheld;
  }
  pool_ = pool_of(rules_, exclusive, withheld);

  std::vector<ContainerKey> moved;
  for (auto& [key, holding] : holdings_) {
    const bool is_changed = changed != nullptr && key == *changed;
    const Mode mode = holding.placement.mode;
    if (is_changed) holding.generation = generation_;
    if ((mode != Mode::kShared && mode != Mode::kReserved) || holding.conflict) continue;
    CpuSet cpus = shared_cpus(mode, holding.within, pool_, rules_.reserved, !holding.workload.kubelet_cpus.empty());
    // Decisions never leave a shared container without CPUs; should one slip through, it stays where it is.
    if (cpus.empty() || cpus == holding.placement.cpus) continue;
    holding.placement.cpus = std::move(cpus);
    holding.generation = generation_;
    if (!is_changed) moved.push_back(key);
  }
  return moved;
}

bool Ledger::bind(const ContainerKey& key, const std::string& container_id) {
  Holding* holding = mutable_find(key);
  if (holding == nullptr) return false;
  by_container_.erase(holding->container_id);
  holding->container_id = container_id;
  holding->state = HoldingState::kBound;
  by_container_[container_id] = key;
  return true;
}

bool Ledger::set_doubt(const ContainerKey& key, std::chrono::milliseconds since) {
  Holding* holding = mutable_find(key);
  if (holding == nullptr) return false;
  holding->state = HoldingState::kInDoubt;
  if (holding->doubt_since.count() == 0) holding->doubt_since = since;
  return true;
}

bool Ledger::set_in_flight(const ContainerKey& key) {
  Holding* holding = mutable_find(key);
  if (holding != nullptr) holding->state = HoldingState::kInFlight;
  return holding != nullptr;
}

bool Ledger::set_started(const ContainerKey& key) {
  Holding* holding = mutable_find(key);
  if (holding != nullptr) holding->started = true;
  return holding != nullptr;
}

bool Ledger::set_crashed(const ContainerKey& key, std::chrono::milliseconds since) {
  Holding* holding = mutable_find(key);
  if (holding == nullptr) return false;
  holding->state = HoldingState::kCrashed;
  holding->crashed_since = since;
  return true;
}

bool Ledger::set_demand(const ContainerKey& key, const Demand& demand) {
  Holding* holding = mutable_find(key);
  if (holding != nullptr) holding->workload.demand = demand;
  return holding != nullptr;
}

bool Ledger::set_narrowed(const ContainerKey& key) {
  Holding* holding = mutable_find(key);
  if (holding != nullptr) holding->narrowed = true;
  return holding != nullptr;
}

bool Ledger::set_asked(const ContainerKey& key) {
  Holding* holding = mutable_find(key);
  if (holding != nullptr) holding->asked_on = holding->placement.cpus;
  return holding != nullptr;
}

bool Ledger::kubelet_hands_out_cpusets() const {
  return std::any_of(holdings_.begin(), holdings_.end(), [](const auto& entry) {
    return !entry.second.workload.kubelet_cpus.empty() && entry.second.placement.mode != Mode::kForeign;
  });
}

}  // namespace topolet
