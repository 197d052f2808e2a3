// A decision as a plugin sees it: the core's values as the structs of <topolet/abi.h>. All of it is copied, so that a
// plugin that writes where it must not changes nothing of the core's.
// `known`: the values of enumerations and the flags that it is made with; newest_minor() says which plugins know all
// that are in it.
#pragma once

#include <topolet/abi.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "core/placement/node_demand.hpp"
#include "core/placement/policy.hpp"
#include "core/plugin/call/values_by_minor.hpp"
#include "core/plugin/guard/lent_block.hpp"

namespace topolet::plugin {

topolet_str view_of(std::string_view text);

/// A topology as C structs, on pages that nobody can write. Immutable.
class AbiTopology {
 public:
  /// A null topology is shown as an empty machine.
  explicit AbiTopology(std::shared_ptr<const topology::Topology> topology, const KnownValues& known = {});
  AbiTopology(const AbiTopology&) = delete;
  AbiTopology& operator=(const AbiTopology&) = delete;

  const topolet_topology& view() const { return *view_; }
  std::uint32_t newest_minor() const { return values_.newest_minor(); }
  const std::shared_ptr<const topology::Topology>& topology() const { return topology_; }
  /// Checks all of it: a plugin can put other pages in their place. Safe from any thread.
  LentState check() const { return block_.check_once(); }

 private:
  std::shared_ptr<const topology::Topology> topology_;
  ValueTranslator values_;
  LentBlock block_{{.guard = LentGuard::kUnwritable}};
  const topolet_topology* view_;
};

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

/// A workload as C structs, in this block. `container_id`: the runtime's. Without `with_env`, its environment is not
/// copied.
const topolet_workload* lend_workload(LentBlock& block, ValueTranslator& values, const placement::Workload& workload,
                                      const std::string& container_id, bool with_env);

/// What is measured as C structs, in this block; null where that is nothing. `entries`: the ledger's, in their order.
const topolet_load* lend_load(LentBlock& block, const load::Load* load, const topology::Topology& topology,
                              const placement::LedgerEntries& entries);

/// One PolicyRequest as C structs, made once for all plugins and calls of a decision. Borrows the request, which must
/// stay unchanged.
class AbiRequest {
 public:
  AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology,
             std::shared_ptr<AbiLedger> ledger, LentMemory memory, const KnownValues& known = {});
  /// Makes its own ledger.
  AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology,
             LentMemory memory = {}, const KnownValues& known = {});
  AbiRequest(const AbiRequest&) = delete;
  AbiRequest& operator=(const AbiRequest&) = delete;

  const topolet_request& view() const { return *view_; }
  /// With the topology and the ledger.
  std::uint32_t newest_minor() const;
  const placement::PolicyRequest& request() const { return request_; }
  const AbiLedger& ledger() const { return *ledger_; }
  const AbiTopology& topology() const { return *topology_; }
  LentBlock& block() { return block_; }
  const LentBlock& block() const { return block_; }
  bool is_intact() const { return block_.is_intact() && ledger_->is_intact(); }

 private:
  const topolet_candidate* copy_candidates();

  const placement::PolicyRequest& request_;
  const std::shared_ptr<const AbiTopology> topology_;
  const std::shared_ptr<AbiLedger> ledger_;
  ValueTranslator values_;
  LentBlock block_;
  const topolet_request* view_;
};

}  // namespace topolet::plugin
