// The ledger as a plugin sees it.
// `known`: the values of enumerations and the flags that it is made with; newest_minor() says which plugins know all
// that are in it.
#pragma once

#include <topolet/abi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/placement/node_demand.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/call/abi_topology.hpp"
#include "core/plugin/call/values_by_minor.hpp"
#include "core/plugin/guard/lent_block.hpp"

namespace topolet::plugin {

/// A ledger as C structs.
class AbiLedger {
 public:
  AbiLedger(const placement::LedgerSnapshot& ledger, const AbiTopology& topology, const LentMemory& memory = {},
            const KnownValues& known = {});
  AbiLedger(const AbiLedger&) = delete;
  AbiLedger& operator=(const AbiLedger&) = delete;

  /// Returns true if it was made from a ledger of this topology.
  bool is_of(const AbiTopology& topology) const { return topology_ == topology.topology(); }
  /// Shows this ledger instead, of the same topology. Only containers that it did not show before are copied; they
  /// count as the same if both ledgers share them. Not where it is read-only; nobody may be looking. If it throws, it
  /// is of no use any more.
  void update(const placement::LedgerSnapshot& ledger);

  /// Until the next update.
  const topolet_ledger& view() const { return *view_; }
  /// Also of containers that were shown a while ago.
  std::uint32_t newest_minor() const { return values_.newest_minor(); }
  // See LentBlock. Once it is not intact, it is of no use any more.
  LentState check() const;
  LentState check_all() const;
  bool is_intact() const { return contents_.is_intact() && list_.is_intact(); }
  void retire();

 private:
  bool shows(const placement::LedgerSnapshot& ledger) const;
  /// Where each of these containers is in containers_; kNew for those that are not there.
  std::vector<std::size_t> positions_of(const placement::LedgerEntries& entries) const;
  /// Where the containers are that are shown otherwise than they are now; nothing if some have come or gone.
  std::optional<std::vector<std::size_t>> changed_positions(const placement::LedgerEntries& entries) const;
  void replace_at(const std::vector<std::size_t>& positions, const placement::LedgerEntries& entries);
  /// Takes over what is shown of the containers that stay, and copies the others.
  void replace_entries(const placement::LedgerEntries& entries);
  void copy_entries(const placement::LedgerEntries& entries);
  /// Without what containers that are gone have left in it.
  void copy_contents_anew();
  void fill_list(const placement::LedgerSnapshot& ledger);

  static constexpr auto kNew = static_cast<std::size_t>(-1);

  const std::shared_ptr<const topology::Topology> topology_;
  placement::LedgerSnapshot ledger_;  ///< that is shown; its `entries` are empty
  std::vector<placement::LedgerEntries::Shared> containers_;
  std::vector<topolet_ledger_entry> entries_;  ///< what is shown of them, pointing into contents_
  placement::NodeDemands demands_;
  ValueTranslator values_;
  LentBlock contents_;
  std::size_t live_bytes_ = 0;  ///< of contents_, when it held nothing else for the last time
  LentBlock list_;              ///< the entries and the rest of the ledger
  const topolet_ledger* view_ = nullptr;
};

}  // namespace topolet::plugin
