#include "core/plugin/call/abi_ledger.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/plugin/call/abi_arrays.hpp"
#include "core/plugin/call/abi_workload.hpp"

namespace topolet::plugin {

// The enumerators are passed as numbers; these are the places where ours and the ABI's could drift apart.
static_assert(static_cast<int>(placement::Mode::kExclusive) == TOPOLET_MODE_EXCLUSIVE);
static_assert(static_cast<int>(placement::Mode::kShared) == TOPOLET_MODE_SHARED);
static_assert(static_cast<int>(placement::Mode::kReserved) == TOPOLET_MODE_RESERVED);
static_assert(static_cast<int>(placement::Mode::kForeign) == TOPOLET_MODE_FOREIGN);

namespace {

std::uint32_t flags_of(const placement::LedgerEntry& entry) {
  return (entry.pending ? TOPOLET_ENTRY_PENDING : 0) | (entry.started ? TOPOLET_ENTRY_STARTED : 0) |
         (entry.adopted ? TOPOLET_ENTRY_ADOPTED : 0);
}

/// Copies the ledger's entries of containers, and what many of them have in common once: all that is copied is compared
/// after each call. Shared containers mostly run on the same CPUs, replicas request the same and have the same labels,
/// and the annotations of all have the same keys.
class EntryCopier {
 public:
  EntryCopier(LentBlock& block, ValueTranslator& values) : block_(block), values_(values) {}

  /// The entries must live as long as this object.
  topolet_ledger_entry copy(const placement::LedgerEntry& entry) {
    const placement::Placement& placement = entry.placement;
    if (last_ == nullptr || last_->placement.cpus != placement.cpus) cpus_ = block_.copy(placement.cpus);
    if (last_ == nullptr || last_->demand != entry.demand) demand_ = lend_demand(block_, values_, entry.demand);
    last_ = &entry;
    return {block_.copy(entry.key.pod_uid),
            block_.copy(entry.key.name),
            entry.key.attempt,
            qos_of(entry.qos, values_),
            values_.shown(AbiValues::kMode, placement.mode),
            values_.shown_flags(AbiValues::kEntryFlags, flags_of(entry)),
            cpus_,
            block_.copy(placement.withheld),
            block_.copy(placement.mems),
            demand_,
            copy_pairs(entry.settings),
            block_.copy(entry.used_devices),
            block_.copy(entry.pod_name),
            copy_text(entry.pod_namespace),
            block_.copy(entry.key.sandbox_id),
            block_.copy(entry.container_id),
            copy_text(entry.runtime_handler),
            copy_pairs(entry.pod_labels),
            copy_pairs(entry.pod_annotations),
            copy_pairs(entry.annotations),
            copy_pairs(entry.tags),
            block_.copy(entry.devices),
            block_.copy(entry.cdi_devices)};
  }

 private:
  /// Once each text.
  topolet_str copy_text(const std::string& text) {
    const auto [known, is_new] = texts_.try_emplace(text);
    if (is_new) known->second = block_.copy(text);
    return known->second;
  }
  /// Once each map.
  topolet_kvs copy_pairs(const SharedStringMap& pairs) {
    if (pairs.empty()) return {nullptr, 0};
    const SharedStringMap::Map& map = pairs;
    const auto [known, is_new] = maps_.try_emplace(&map);
    if (is_new) known->second = copy_new_pairs(map);
    return known->second;
  }
  topolet_kvs copy_new_pairs(const SharedStringMap::Map& pairs) {
    const LentBlock::Array<topolet_kv> copied = block_.make_array<topolet_kv>(pairs.size());
    std::size_t i = 0;
    for (const auto& [key, value] : pairs) {
      const topolet_str shown_key = copy_text(key);
      copied.own[i++] = {shown_key, block_.copy(value)};
    }
    return {copied.lent, pairs.size()};
  }

  struct HashOfContent {
    std::size_t operator()(const SharedStringMap::Map* map) const {
      std::size_t hash = map->size();
      for (const auto& [key, value] : *map) hash = hash * 31 + std::hash<std::string>()(value);
      return hash;
    }
  };
  struct IsSameContent {
    bool operator()(const SharedStringMap::Map* a, const SharedStringMap::Map* b) const { return a == b || *a == *b; }
  };

  LentBlock& block_;
  ValueTranslator& values_;
  const placement::LedgerEntry* last_ = nullptr;
  topolet_set cpus_{};
  const topolet_demand* demand_ = nullptr;
  std::unordered_map<std::string_view, topolet_str> texts_;
  std::unordered_map<const SharedStringMap::Map*, topolet_kvs, HashOfContent, IsSameContent> maps_;
};

}  // namespace

AbiLedger::AbiLedger(const placement::LedgerSnapshot& ledger, const AbiTopology& topology, const LentMemory& memory,
                     const KnownValues& known)
    : topology_(topology.topology()), demands_(*topology_), values_(known), contents_(memory), list_(memory) {
  copy_entries(ledger.entries);
  contents_.seal();
  fill_list(ledger);
}

void AbiLedger::update(const placement::LedgerSnapshot& ledger) {
  if (shows(ledger)) return;
  replace_entries(ledger.entries);
  // So seldom that the rest of the decisions notice nothing, so often that little is compared for nothing.
  constexpr std::size_t kSpareBytes = 2 << 10;
  if (contents_.used_bytes() > live_bytes_ + live_bytes_ / 2 + kSpareBytes) copy_contents_anew();
  contents_.seal();
  fill_list(ledger);
}

bool AbiLedger::shows(const placement::LedgerSnapshot& ledger) const {
  return ledger_.generation == ledger.generation && ledger_.allowed == ledger.allowed &&
         ledger_.reserved == ledger.reserved && ledger_.pool == ledger.pool && ledger_.exclusive == ledger.exclusive &&
         ledger_.withheld == ledger.withheld && containers_ == ledger.entries.shared();
}

void AbiLedger::copy_entries(const placement::LedgerEntries& entries) {
  containers_ = entries.shared();
  entries_.resize(containers_.size());
  copy_contents_anew();
  demands_ = placement::NodeDemands(*topology_);
  demands_.add(entries);
}

void AbiLedger::copy_contents_anew() {
  if (contents_.used_bytes() > 0) contents_.clear();
  values_.clear();
  EntryCopier copier(contents_, values_);
  for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i] = copier.copy(*containers_[i]);
  live_bytes_ = contents_.used_bytes();
}

std::vector<std::size_t> AbiLedger::positions_of(const placement::LedgerEntries& entries) const {
  std::vector<std::size_t> positions;
  positions.reserve(entries.size());
  std::size_t at = 0;
  for (const placement::LedgerEntries::Shared& container : entries.shared()) {
    // Both are in the order of their keys. Where they are not, some that are there count as new.
    while (at < containers_.size() && containers_[at] != container && containers_[at]->key <= container->key) ++at;
    const bool is_there = at < containers_.size() && containers_[at] == container;
    positions.push_back(is_there ? at++ : kNew);
  }
  return positions;
}

std::optional<std::vector<std::size_t>> AbiLedger::changed_positions(const placement::LedgerEntries& entries) const {
  if (entries.size() != containers_.size()) return std::nullopt;
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    if (entries.shared()[i] == containers_[i]) continue;
    if (entries[i].key != containers_[i]->key) return std::nullopt;
    changed.push_back(i);
  }
  return changed;
}

void AbiLedger::replace_at(const std::vector<std::size_t>& positions, const placement::LedgerEntries& entries) {
  placement::LedgerEntries before;
  placement::LedgerEntries now;
  EntryCopier copier(contents_, values_);
  for (const std::size_t i : positions) {
    before.push_back(std::exchange(containers_[i], entries.shared()[i]));
    now.push_back(containers_[i]);
    entries_[i] = copier.copy(*containers_[i]);
  }
  demands_.remove(before);
  demands_.add(now);
}

void AbiLedger::replace_entries(const placement::LedgerEntries& entries) {
  if (const auto changed = changed_positions(entries); changed && 2 * changed->size() <= entries.size())
    return replace_at(*changed, entries);
  const std::vector<std::size_t> positions = positions_of(entries);
  const auto new_ones = static_cast<std::size_t>(std::count(positions.begin(), positions.end(), kNew));
  if (2 * new_ones > positions.size()) return copy_entries(entries);
  std::vector<placement::LedgerEntries::Shared> containers;
  std::vector<topolet_ledger_entry> shown;
  containers.reserve(positions.size());
  shown.reserve(positions.size());
  placement::LedgerEntries gone;
  placement::LedgerEntries fresh;
  EntryCopier copier(contents_, values_);
  std::size_t at = 0;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const placement::LedgerEntries::Shared& container = entries.shared()[i];
    if (positions[i] == kNew) {
      containers.push_back(container);
      shown.push_back(copier.copy(*container));
      fresh.push_back(container);
      continue;
    }
    for (; at < positions[i]; ++at) gone.push_back(std::move(containers_[at]));
    containers.push_back(std::move(containers_[at]));
    shown.push_back(entries_[at++]);
  }
  for (; at < containers_.size(); ++at) gone.push_back(std::move(containers_[at]));
  demands_.remove(gone);
  demands_.add(fresh);
  containers_.swap(containers);
  entries_.swap(shown);
}

void AbiLedger::fill_list(const placement::LedgerSnapshot& ledger) {
  ledger_ = {
      ledger.generation, ledger.allowed, ledger.reserved, ledger.pool, ledger.exclusive, ledger.withheld, {}, {}};
  list_.clear();
  const auto* node_demands = copy_each<
      topolet_node_demand>(list_, demands_.demands(), [](const placement::NodeDemand& node) {
    return topolet_node_demand{node.containers, node.exclusive_cpus, node.cpu_request_milli, node.memory_request_bytes};
  });
  view_ = list_.copy_struct(topolet_ledger{sizeof(topolet_ledger), 0, ledger.generation, list_.copy(ledger.allowed),
                                           list_.copy(ledger.reserved), list_.copy(ledger.pool),
                                           list_.copy(ledger.exclusive), list_.copy(ledger.withheld),
                                           list_.copy_array(entries_), count_of(entries_), sizeof(topolet_ledger_entry),
                                           node_demands, count_of(demands_.demands()), sizeof(topolet_node_demand)});
  list_.seal();
}

LentState AbiLedger::check() const {
  const LentState contents = contents_.check();
  return contents == LentState::kIntact ? list_.check() : contents;
}

LentState AbiLedger::check_all() const {
  const LentState contents = contents_.check_all();
  return contents == LentState::kIntact ? list_.check_all() : contents;
}

void AbiLedger::retire() {
  contents_.retire();
  list_.retire();
}

}  // namespace topolet::plugin
