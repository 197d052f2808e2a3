// The machine as a plugin sees it.
// `known`: the values of enumerations and the flags that it is made with; newest_minor() says which plugins know all
// that are in it.
#pragma once

#include <topolet/abi.h>

#include <cstdint>
#include <memory>

#include "core/plugin/call/values_by_minor.hpp"
#include "core/plugin/guard/lent_block.hpp"
#include "core/topology/topology.hpp"

namespace topolet::plugin {

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

}  // namespace topolet::plugin
