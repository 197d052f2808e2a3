// A decision as a plugin sees it: the core's values as the structs of <topolet/abi.h>. All of it is copied, so that a
// plugin that writes where it must not changes nothing of the core's.
// `known`: the values of enumerations and the flags that it is made with; newest_minor() says which plugins know all
// that are in it.
#pragma once

#include <topolet/abi.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/placement/policy.hpp"
#include "core/plugin/call/abi_ledger.hpp"
#include "core/plugin/call/abi_topology.hpp"
#include "core/plugin/call/abi_workload.hpp"
#include "core/plugin/call/values_by_minor.hpp"
#include "core/plugin/guard/lent_block.hpp"

namespace topolet::plugin {

topolet_str view_of(std::string_view text);

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
