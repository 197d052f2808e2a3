#include "plugins/numa/room.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/numa/cache_groups.hpp"

namespace topolet::numa {
namespace {

using sdk::Set;

/// The CPUs of the pool that no shared container requests, in thousandths.
std::int64_t uncommitted_milli(const topolet_ledger& ledger) {
  auto milli = static_cast<std::int64_t>(sdk::size_of(ledger.pool)) * 1000;
  for (const topolet_ledger_entry& entry : sdk::entries(ledger)) {
    const bool shares = entry.mode == TOPOLET_MODE_SHARED || entry.mode == TOPOLET_MODE_RESERVED;
    if (shares && entry.demand != nullptr) milli -= std::max<std::int64_t>(0, entry.demand->cpu_request_milli);
  }
  return milli;
}

/// Returns the sizes of the pieces that containers are to fit in: nodes, or caches where nodes have several.
std::vector<std::size_t> piece_sizes(const topolet_topology& topology, const Set& usable) {
  const CacheGroups caches(topology);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> by_place;
  for (const topolet_pu& pu : sdk::pus(topology)) {
    if (topolet_set_has(usable.view(), pu.os_index) == 0) continue;
    ++by_place[{pu.node, caches.divide_nodes() ? caches.group_of(pu.os_index) : 0}];
  }
  std::vector<std::size_t> sizes;
  for (const auto& [place, cpus] : by_place) sizes.push_back(cpus);
  return sizes;
}

std::size_t room_wanted(std::size_t cpus_of_piece, std::uint32_t largest) {
  const std::size_t half = cpus_of_piece / 2;
  return largest == 0 ? half : std::min<std::size_t>(half, largest);
}

/// Labels by which pods of one workload, or those of two revisions of it, are told apart.
bool tells_pods_apart(std::string_view label) {
  constexpr std::array<std::string_view, 6> kLabels = {"pod-template-hash",
                                                       "controller-revision-hash",
                                                       "pod-template-generation",
                                                       "statefulset.kubernetes.io/pod-name",
                                                       "apps.kubernetes.io/pod-index",
                                                       "batch.kubernetes.io/job-completion-index"};
  constexpr std::string_view kOfKubelet = "io.kubernetes.";
  return label.substr(0, kOfKubelet.size()) == kOfKubelet ||
         std::find(kLabels.begin(), kLabels.end(), label) != kLabels.end();
}

/// The labels of a workload, one after the other. Labels are in the order of their keys.
class WorkloadLabels {
 public:
  explicit WorkloadLabels(topolet_kvs labels) : labels_(labels) {}

  /// Null after the last.
  const topolet_kv* next() {
    while (at_ < labels_.count) {
      const topolet_kv& label = labels_.items[at_++];
      if (!tells_pods_apart(sdk::text(label.key))) return &label;
    }
    return nullptr;
  }

 private:
  topolet_kvs labels_;
  std::size_t at_ = 0;
};

/// Returns false for pods without labels, of which nothing tells that they are of one workload.
bool are_of_one_workload(topolet_kvs one, topolet_kvs other) {
  WorkloadLabels labels_of_one(one);
  WorkloadLabels labels_of_other(other);
  bool any = false;
  while (true) {
    const topolet_kv* const a = labels_of_one.next();
    const topolet_kv* const b = labels_of_other.next();
    if (a == nullptr || b == nullptr) return a == b && any;
    if (sdk::text(a->key) != sdk::text(b->key) || sdk::text(a->value) != sdk::text(b->value)) return false;
    any = true;
  }
}

/// Returns what shared containers use of each node's CPUs, in thousandths: each in proportion to its CPUs there.
std::vector<std::int64_t> used_milli(const topolet_request& request, const topolet_load& load) {
  constexpr std::int64_t kLongestAgeMs = 60'000;
  const auto nodes = sdk::nodes(*request.topology);
  const auto entries = sdk::entries(*request.ledger);
  std::vector<std::int64_t> used(nodes.size(), 0);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const topolet_entry_load& measured = *TOPOLET_AT(topolet_entry_load, load.entries, load.entry_stride, i);
    const bool shares = entries[i].mode == TOPOLET_MODE_SHARED || entries[i].mode == TOPOLET_MODE_RESERVED;
    const auto cpus = static_cast<std::int64_t>(sdk::size_of(entries[i].cpus));
    const bool is_known = measured.cpu_milli > 0 && measured.age_ms >= 0 && measured.age_ms <= kLongestAgeMs;
    if (!shares || !is_known || cpus == 0) continue;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node].memory_only != 0) continue;
      const auto here = static_cast<std::int64_t>(sdk::size_of_both(entries[i].cpus, nodes[node].cpus));
      used[node] += measured.cpu_milli * here / cpus;
    }
  }
  return used;
}

}  // namespace

bool leaves_room(const topolet_request& request) {
  const topolet_ledger& ledger = *request.ledger;
  if (request.cpu_source != TOPOLET_CPUS_FROM_POOL) return false;
  Set usable(ledger.allowed);
  usable -= ledger.reserved_cpus;
  usable -= request.topology->isolated;
  std::size_t wanted = 0;
  for (const std::size_t size : piece_sizes(*request.topology, usable)) {
    wanted += room_wanted(size, request.largest_exclusive_cpus);
  }
  return uncommitted_milli(ledger) >= static_cast<std::int64_t>(wanted + request.exclusive_cpus) * 1000;
}

void add_siblings(const topolet_request& request, std::vector<CandidateResources>& candidates) {
  const topolet_workload& workload = *request.workload;
  for (const topolet_ledger_entry& entry : sdk::entries(*request.ledger)) {
    const bool is_sibling = sdk::text(entry.pod_namespace) == sdk::text(workload.pod_namespace) &&
                            sdk::text(entry.pod_uid) != sdk::text(workload.pod_uid) &&
                            are_of_one_workload(entry.pod_labels, workload.pod_labels);
    if (!is_sibling) continue;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (sdk::size_of_both(entry.cpus, sdk::candidates(request)[i].cpus) > 0) ++candidates[i].siblings;
    }
  }
}

void add_busy(const topolet_request& request, std::vector<CandidateResources>& candidates) {
  const topolet_load* const load = request.load;
  if (load == nullptr || load->entries == nullptr) return;
  const std::vector<std::int64_t> used = used_milli(request, *load);
  const auto nodes = sdk::nodes(*request.topology);
  for (CandidateResources& candidate : candidates) {
    std::int64_t milli = 0;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      if (topolet_set_has(candidate.nodes, nodes[i].os_index) != 0) milli += used[i];
    }
    candidate.is_busy = 2 * milli > static_cast<std::int64_t>(candidate.shared_cpus) * 1000;
  }
}

}  // namespace topolet::numa
