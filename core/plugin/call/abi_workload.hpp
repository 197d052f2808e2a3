// A container, what it requests and what is measured, as plugins see them: in a block that the caller lends.
#pragma once

#include <topolet/abi.h>

#include <cstdint>
#include <string>

#include "core/load/load.hpp"
#include "core/placement/policy.hpp"
#include "core/placement/workload.hpp"
#include "core/plugin/call/values_by_minor.hpp"
#include "core/plugin/guard/lent_block.hpp"
#include "core/topology/topology.hpp"

namespace topolet::plugin {

/// Returns a topolet_qos. A plugin knows three classes: one that nobody tells is neither Guaranteed nor does it need
/// nothing.
std::int32_t qos_of(placement::Qos qos, ValueTranslator& values);

const topolet_demand* lend_demand(LentBlock& block, ValueTranslator& values, const placement::Demand& demand);

/// A workload as C structs, in this block. `container_id`: the runtime's. Without `with_env`, its environment is not
/// copied.
const topolet_workload* lend_workload(LentBlock& block, ValueTranslator& values, const placement::Workload& workload,
                                      const std::string& container_id, bool with_env);

/// What is measured as C structs, in this block; null where that is nothing. `entries`: the ledger's, in their order.
const topolet_load* lend_load(LentBlock& block, const load::Load* load, const topology::Topology& topology,
                              const placement::LedgerEntries& entries);

}  // namespace topolet::plugin
