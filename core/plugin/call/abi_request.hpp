// What a plugin sees of a decision: the core's values as the structs of <topolet/abi.h>.
#pragma once

#include <topolet/abi.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/placement/policy.hpp"

namespace topolet::plugin {

topolet_str view_of(std::string_view text);

template <class Tag>
topolet_set view_of(const IndexSet<Tag>& set) {
  return {set.words().data(), set.words().size()};
}

/// A topology as C structs. Shares the topology, so the view stays valid as long as this object. Immutable.
class AbiTopology {
 public:
  /// A null topology is shown as an empty machine.
  explicit AbiTopology(std::shared_ptr<const topology::Topology> topology);
  AbiTopology(const AbiTopology&) = delete;
  AbiTopology& operator=(const AbiTopology&) = delete;

  const topolet_topology& view() const { return view_; }
  const std::shared_ptr<const topology::Topology>& topology() const { return topology_; }

 private:
  void fill_memory();
  void fill_devices();
  topolet_kvs info_of(const topology::DeviceInfo& info);

  std::shared_ptr<const topology::Topology> topology_;
  std::vector<topolet_pu> pus_;
  std::vector<topolet_huge_pages> huge_pages_;
  std::vector<topolet_node> nodes_;
  std::vector<topolet_domain> domains_;
  std::vector<topolet_set> cores_, l3s_, dies_, packages_;
  std::vector<topolet_cpu_kind> cpu_kinds_;
  std::vector<topolet_cache> caches_;
  std::vector<topolet_pci_bridge> pci_bridges_;
  std::vector<topolet_pci_device> pci_devices_;
  std::vector<topolet_os_device> os_devices_;
  std::vector<std::vector<topolet_kv>> infos_;
  topolet_topology view_{};
};

/// A demand as C structs. Borrows the demand's strings.
class AbiDemand {
 public:
  explicit AbiDemand(const placement::Demand& demand);
  /// Valid until this object moves.
  const topolet_demand* view() const { return &view_; }

 private:
  std::vector<topolet_huge_page_limit> huge_page_limits_;
  topolet_demand view_{};
};

/// A ledger as C structs. Borrows the ledger, which must stay unchanged. Immutable.
class AbiLedger {
 public:
  AbiLedger(const placement::LedgerSnapshot& ledger, const topology::Topology& topology);
  AbiLedger(const AbiLedger&) = delete;
  AbiLedger& operator=(const AbiLedger&) = delete;

  const topolet_ledger& view() const { return view_; }

 private:
  topolet_kvs settings_of(const std::map<std::string, std::string>& settings);
  topolet_strs strings_of(const std::vector<std::string>& strings);

  std::vector<AbiDemand> demands_;
  std::deque<std::vector<topolet_kv>> settings_;
  std::deque<std::vector<topolet_str>> strings_;
  std::vector<topolet_ledger_entry> entries_;
  std::vector<topolet_node_demand> node_demands_;
  topolet_ledger view_{};
};

/// A workload as C structs. Borrows the workload, which must stay unchanged. Immutable.
class AbiWorkload {
 public:
  explicit AbiWorkload(const placement::Workload& workload);
  AbiWorkload(const AbiWorkload&) = delete;
  AbiWorkload& operator=(const AbiWorkload&) = delete;

  const topolet_workload& view() const { return view_; }

 private:
  AbiDemand demand_;
  std::optional<AbiDemand> pod_demand_;
  std::vector<topolet_str> devices_, cdi_devices_;
  std::vector<topolet_kv> env_, pod_labels_, pod_annotations_, annotations_, settings_;
  std::vector<topolet_str> used_devices_;
  topolet_workload view_{};
};

/// One PolicyRequest as C structs, made once for all plugins and calls of a decision. Borrows the request, which must
/// stay unchanged. Immutable.
class AbiRequest {
 public:
  AbiRequest(const placement::PolicyRequest& request, std::shared_ptr<const AbiTopology> topology);
  AbiRequest(const AbiRequest&) = delete;
  AbiRequest& operator=(const AbiRequest&) = delete;

  const topolet_request& view() const { return view_; }
  const placement::PolicyRequest& request() const { return request_; }

 private:
  void fill_candidates();

  const placement::PolicyRequest& request_;
  std::shared_ptr<const AbiTopology> topology_;
  AbiLedger ledger_;
  AbiWorkload workload_;
  std::vector<CpuSet> free_;
  std::vector<topolet_candidate> candidates_;
  topolet_request view_{};
};

}  // namespace topolet::plugin
