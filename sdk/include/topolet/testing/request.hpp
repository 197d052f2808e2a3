// Containers, a ledger and requests, as a plugin sees them. See <topolet/testing.hpp>.
#pragma once

#include <topolet/testing/machine.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace topolet::sdk::testing {

/// A container that is to be placed or has been placed.
struct Container {
  std::string pod_uid = "uid";
  std::string name = "main";
  std::string pod_name = "pod";
  std::string pod_namespace = "default";
  topolet_qos qos = TOPOLET_QOS_GUARANTEED;
  std::int64_t cpu_request_milli = 0;
  std::int64_t memory_request_bytes = 0;
  std::vector<std::string> devices = {};
  std::vector<std::string> cdi_devices = {};
  std::vector<std::pair<std::string, std::string>> env = {};
  std::vector<std::pair<std::string, std::string>> pod_labels = {};
  std::vector<std::pair<std::string, std::string>> pod_annotations = {};
  Set kubelet_cpus = {};
  Set kubelet_mems = {};
  std::vector<std::pair<std::string, std::string>> settings = {};
  std::int64_t pod_cpu_request_milli = 0;  ///< of the whole pod; 0: unknown
  Set pod_nodes = {};
  std::uint32_t attempt = 0;
  std::string sandbox_id = {};
  std::string container_id = {};  ///< empty: the runtime has not created it
  std::string runtime_handler = {};
  std::vector<std::pair<std::string, std::string>> annotations = {};        ///< the container's own
  std::vector<std::pair<std::string, std::int64_t>> huge_page_limits = {};  ///< by page size, such as "2MB"
  std::vector<std::string> used_devices = {};
  std::int64_t pod_memory_request_bytes = 0;                   ///< of the whole pod, if its CPU request is known
  std::vector<std::pair<std::string, std::string>> tags = {};  ///< by "ID/KEY"
};

/// A Container as a plugin sees it.
class Workload {
 public:
  explicit Workload(Container container) : container_(std::move(container)) {
    demand_.struct_size = sizeof(demand_);
    demand_.cpu_request_milli = demand_.cpu_limit_milli = container_.cpu_request_milli;
    demand_.memory_request_bytes = demand_.memory_limit_bytes = container_.memory_request_bytes;
    for (const auto& [size, bytes] : container_.huge_page_limits) huge_pages_.push_back({borrow(size), bytes});
    demand_.huge_page_limits = huge_pages_.data();
    demand_.huge_page_limit_count = static_cast<std::uint32_t>(huge_pages_.size());
    demand_.huge_page_limit_stride = sizeof(topolet_huge_page_limit);
    pod_demand_.struct_size = sizeof(pod_demand_);
    pod_demand_.cpu_request_milli = pod_demand_.cpu_limit_milli = container_.pod_cpu_request_milli;
    pod_demand_.memory_request_bytes = pod_demand_.memory_limit_bytes = container_.pod_memory_request_bytes;
    pod_demand_.huge_page_limit_stride = sizeof(topolet_huge_page_limit);
    view_.struct_size = sizeof(view_);
    view_.pod_uid = borrow(container_.pod_uid);
    view_.pod_name = borrow(container_.pod_name);
    view_.pod_namespace = borrow(container_.pod_namespace);
    view_.container_name = borrow(container_.name);
    view_.qos = container_.qos;
    view_.attempt = container_.attempt;
    view_.sandbox_id = borrow(container_.sandbox_id);
    view_.container_id = borrow(container_.container_id);
    view_.runtime_handler = borrow(container_.runtime_handler);
    view_.annotations = pairs(container_.annotations);
    view_.demand = &demand_;
    view_.kubelet_cpus = container_.kubelet_cpus.view();
    view_.kubelet_mems = container_.kubelet_mems.view();
    view_.devices = strings(container_.devices);
    view_.cdi_devices = strings(container_.cdi_devices);
    view_.env = pairs(container_.env);
    view_.pod_labels = pairs(container_.pod_labels);
    view_.pod_annotations = pairs(container_.pod_annotations);
    view_.settings = pairs(container_.settings);
    view_.pod_demand = container_.pod_cpu_request_milli > 0 ? &pod_demand_ : nullptr;
    view_.pod_nodes = container_.pod_nodes.view();
    view_.used_devices = strings(container_.used_devices);
    view_.tags = pairs(container_.tags);
  }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  const topolet_workload& view() const { return view_; }

 private:
  topolet_strs strings(const std::vector<std::string>& texts) {
    std::vector<topolet_str>& views = strings_.emplace_back();
    for (const std::string& text : texts) views.push_back(borrow(text));
    return {views.data(), views.size()};
  }
  /// As the host gives them: by key, and of several with one key the last.
  topolet_kvs pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::map<std::string_view, std::string_view> sorted;
    for (const auto& [key, value] : pairs) sorted[key] = value;
    std::vector<topolet_kv>& views = pairs_.emplace_back();
    for (const auto& [key, value] : sorted) views.push_back({borrow(key), borrow(value)});
    return {views.data(), views.size()};
  }

  const Container container_;
  std::deque<std::vector<topolet_str>> strings_;
  std::deque<std::vector<topolet_kv>> pairs_;
  std::vector<topolet_huge_page_limit> huge_pages_;
  topolet_demand demand_{};
  topolet_demand pod_demand_{};
  topolet_workload view_{};
};

/// Which container has which CPUs of a machine. Its entries are in the host's order, whatever the order in which they
/// were placed: by pod_uid, container_name, attempt and sandbox_id. The machine must outlive the ledger.
class Ledger {
 public:
  explicit Ledger(const Machine& machine) : machine_(machine), pool_(machine.online()) { refresh(); }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  const topolet_ledger& view() const { return view_; }
  const Set& pool() const { return pool_; }

  /// Reserves CPUs for the system.
  Ledger& reserve(const Set& cpus) {
    reserved_ |= cpus;
    pool_ -= cpus;
    refresh();
    return *this;
  }

  /// `withheld` are CPUs that stay idle for this container. Throws std::logic_error for CPUs that are not in the pool.
  Ledger& place_exclusive(const Container& container, const Set& cpus, const Set& withheld = {}, const Set& mems = {}) {
    if (!(((cpus | withheld) - pool_).empty())) {
      throw std::logic_error("CPUs " + ((cpus | withheld) - pool_).to_string() + " are not in the pool");
    }
    exclusive_ |= cpus;
    withheld_ |= withheld;
    pool_ -= cpus | withheld;
    return add(container, TOPOLET_MODE_EXCLUSIVE, cpus, withheld, mems);
  }

  Ledger& place_shared(const Container& container, const Set& cpus, const Set& mems = {}) {
    return add(container, TOPOLET_MODE_SHARED, cpus, {}, mems);
  }

  /// In the pool and on reserved CPUs.
  Ledger& place_reserved(const Container& container, const Set& cpus, const Set& mems = {}) {
    return add(container, TOPOLET_MODE_RESERVED, cpus, {}, mems);
  }

  /// Seen, but not placed by the host. Its CPUs leave the pool.
  Ledger& place_foreign(const Container& container, const Set& cpus, const Set& mems = {}) {
    exclusive_ |= cpus;
    pool_ -= cpus;
    return add(container, TOPOLET_MODE_FOREIGN, cpus, {}, mems);
  }

  /// Sets TOPOLET_ENTRY_… flags of the container that was placed last.
  Ledger& entry_flags(std::uint32_t flags) {
    entries_.at(last_).flags = flags;
    return *this;
  }

 private:
  Ledger& add(const Container& container, topolet_mode mode, const Set& cpus, const Set& withheld, const Set& mems) {
    const topolet_workload& workload = workloads_.emplace_back(container).view();
    const auto keep = [this](const Set& set) { return sets_.emplace_back(set).view(); };
    const topolet_ledger_entry entry = {workload.pod_uid,
                                        workload.container_name,
                                        workload.attempt,
                                        workload.qos,
                                        mode,
                                        0,
                                        keep(cpus),
                                        keep(withheld),
                                        keep(mems),
                                        workload.demand,
                                        workload.settings,
                                        workload.used_devices,
                                        workload.pod_name,
                                        workload.pod_namespace,
                                        workload.sandbox_id,
                                        workload.container_id,
                                        workload.runtime_handler,
                                        workload.pod_labels,
                                        workload.pod_annotations,
                                        workload.annotations,
                                        workload.tags,
                                        workload.devices,
                                        workload.cdi_devices};
    const auto at = std::upper_bound(entries_.begin(), entries_.end(), entry, comes_before);
    last_ = static_cast<std::size_t>(at - entries_.begin());
    entries_.insert(at, entry);
    refresh();
    return *this;
  }

  static bool comes_before(const topolet_ledger_entry& a, const topolet_ledger_entry& b) {
    const auto key = [](const topolet_ledger_entry& entry) {
      return std::make_tuple(text(entry.pod_uid), text(entry.container_name), entry.attempt, text(entry.sandbox_id));
    };
    return key(a) < key(b);
  }

  /// A request that is divided among nodes is rounded down here; a real host divides it without loss.
  void count_demand() {
    node_demands_.assign(machine_.view().node_count, {});
    for (const topolet_ledger_entry& entry : entries_) {
      const std::size_t all = size_of(entry.cpus);
      for (std::size_t i = 0; i < node_demands_.size(); ++i) {
        const std::size_t here = size_of_both(entry.cpus, machine_.cpus_of_node(i).view());
        if (here == 0) continue;
        topolet_node_demand& demand = node_demands_[i];
        ++demand.containers;
        const bool is_held = entry.mode == TOPOLET_MODE_EXCLUSIVE || entry.mode == TOPOLET_MODE_FOREIGN;
        if (is_held) demand.exclusive_cpus += static_cast<std::uint32_t>(here);
        const auto part = [&](std::int64_t amount) {
          return amount * static_cast<std::int64_t>(here) / static_cast<std::int64_t>(all);
        };
        demand.cpu_request_milli += part(entry.demand->cpu_request_milli);
        if (size_of(entry.mems) == 0) demand.memory_request_bytes += part(entry.demand->memory_request_bytes);
      }
      for (std::size_t i = 0; i < node_demands_.size(); ++i) {
        if (topolet_set_has(entry.mems, nodes(machine_.view())[i].os_index) == 0) continue;
        node_demands_[i].memory_request_bytes +=
            entry.demand->memory_request_bytes / static_cast<std::int64_t>(size_of(entry.mems));
      }
    }
  }

  void refresh() {
    count_demand();
    view_ = {sizeof(topolet_ledger),
             0,
             view_.generation + 1,
             machine_.view().allowed,
             reserved_.view(),
             pool_.view(),
             exclusive_.view(),
             withheld_.view(),
             entries_.data(),
             static_cast<std::uint32_t>(entries_.size()),
             sizeof(topolet_ledger_entry),
             node_demands_.data(),
             static_cast<std::uint32_t>(node_demands_.size()),
             sizeof(topolet_node_demand)};
  }

  const Machine& machine_;
  Set pool_, reserved_, exclusive_, withheld_;
  std::deque<Set> sets_;
  std::deque<Workload> workloads_;
  std::vector<topolet_ledger_entry> entries_;
  std::size_t last_ = 0;  ///< the entry that was placed last
  std::vector<topolet_node_demand> node_demands_;
  topolet_ledger view_{};
};

/// The request of one decision. The candidates are the machine's domains. The machine and the ledger must outlive the
/// request and must not change meanwhile.
class Request {
 public:
  /// `exclusive_cpus` is 0 for a shared container.
  Request(const Machine& machine, const Ledger& ledger, const Container& container, std::uint32_t exclusive_cpus)
      : machine_(machine), ledger_(ledger), workload_(container) {
    for (const topolet_domain& domain : domains(machine.view()))
      add(domain.kind, 1, Set(domain.nodes), Set(domain.cpus));
    view_.struct_size = sizeof(view_);
    view_.exclusive = exclusive_cpus > 0 ? 1 : 0;
    view_.exclusive_cpus = exclusive_cpus;
    view_.candidate_stride = sizeof(topolet_candidate);
    view_.mode = exclusive_cpus > 0 ? TOPOLET_MODE_EXCLUSIVE : TOPOLET_MODE_SHARED;
    view_.why_shared = exclusive_cpus > 0 ? TOPOLET_SHARED_NOT : TOPOLET_SHARED_OTHER;
    view_.min_shared_cpus = 1;
    view_.workload = &workload_.view();
    view_.topology = &machine.view();
    view_.ledger = &ledger.view();
    refresh();
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Adds a candidate that is not a domain of the machine.
  Request& candidate(const Set& nodes) {
    add(TOPOLET_DOMAIN_MACHINE, 0, nodes, machine_.cpus_of(nodes));
    refresh();
    return *this;
  }

  /// Sets TOPOLET_REQUEST_… flags, beside those that are set.
  Request& flags(std::uint32_t flags) {
    view_.flags |= flags;
    return *this;
  }

  /// So many CPUs stay in the pool (placement.min-shared-cpus); 1 unless set.
  Request& min_shared_cpus(std::uint32_t cpus) {
    view_.min_shared_cpus = cpus;
    return *this;
  }

  /// The CPUs of the largest exclusive container of the last day; not known unless set.
  Request& largest_exclusive_cpus(std::uint32_t cpus) {
    view_.largest_exclusive_cpus = cpus;
    return *this;
  }

  /// What is measured, which must outlive the request; nothing unless set.
  Request& load(const topolet_load& load) {
    view_.load = &load;
    return *this;
  }

  const topolet_request& view() const { return view_; }

  /// The position of the candidate with these nodes. Throws std::logic_error if there is none.
  std::size_t position(const Set& nodes) const {
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (Set(candidates_[i].nodes).indices() == nodes.indices()) return i;
    }
    throw std::logic_error("there is no candidate of nodes " + nodes.to_string());
  }

  /// Why the decision is made; TOPOLET_OCCASION_CREATE unless set.
  Request& occasion(topolet_occasion occasion) {
    view_.occasion = occasion;
    return *this;
  }

  /// The mode that the container will have, if it is neither exclusive nor shared.
  Request& mode(topolet_mode mode) {
    view_.mode = mode;
    return *this;
  }

  /// Why a container gets no CPUs of its own; TOPOLET_SHARED_OTHER unless set.
  Request& why_shared(topolet_why_shared why) {
    view_.why_shared = why;
    return *this;
  }

  /// Where the CPUs of an exclusive container come from. It does not change what is usable.
  Request& cpu_source(topolet_cpu_source source) {
    view_.cpu_source = source;
    return *this;
  }

  /// What the container has, or had in its last attempt. The ledger is without it.
  Request& had(const Set& cpus, const Set& withheld = {}, const Set& mems = {}) {
    view_.had_cpus = sets_.emplace_back(cpus).view();
    view_.had_withheld = sets_.emplace_back(withheld).view();
    view_.had_mems = sets_.emplace_back(mems).view();
    return *this;
  }

  /// Those of the CPUs that it had which go before what policies choose.
  Request& keep(const Set& cpus) {
    view_.keep = sets_.emplace_back(cpus).view();
    return *this;
  }

 private:
  void add(std::int32_t kind, std::uint32_t is_domain, const Set& nodes, const Set& cpus) {
    const auto keep = [this](const Set& set) { return sets_.emplace_back(set).view(); };
    candidates_.push_back({kind, is_domain, keep(nodes), keep(cpus), keep(cpus & ledger_.pool()),
                           keep(cpus & ledger_.pool()), distance(nodes), 0});
  }

  std::uint32_t distance(const Set& among) const {
    const topolet_topology& topology = machine_.view();
    std::uint32_t sum = 0;
    for (std::uint32_t from = 0; from < topology.node_count; ++from) {
      for (std::uint32_t to = 0; to < topology.node_count; ++to) {
        const bool both = among.has(nodes(topology)[from].os_index) && among.has(nodes(topology)[to].os_index);
        if (both) sum += topology.distances[from * topology.node_count + to];
      }
    }
    return sum;
  }

  void refresh() {
    view_.candidates = candidates_.data();
    view_.candidate_count = static_cast<std::uint32_t>(candidates_.size());
  }

  const Machine& machine_;
  const Ledger& ledger_;
  const Workload workload_;
  std::deque<Set> sets_;
  std::vector<topolet_candidate> candidates_;
  topolet_request view_{};
};

}  // namespace topolet::sdk::testing
