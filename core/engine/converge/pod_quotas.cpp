#include "core/engine/converge/pod_quotas.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/base/log.hpp"
#include "core/engine/converge/cpuset_files.hpp"

namespace topolet::engine {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnifiedFile = "cpu.max";
constexpr const char* kLegacyQuotaFile = "cpu.cfs_quota_us";
constexpr const char* kLegacyPeriodFile = "cpu.cfs_period_us";
constexpr std::int64_t kUsualPeriodUs = 100000;
/// The whole tree is searched for a pod's cgroup.
constexpr std::uint32_t kChecksWithoutSearch = 30;

Error cannot_read(const fs::path& file) { return {Code::kInternal, fmt::format("{} cannot be read", file.string())}; }

bool is_unified(const fs::path& cgroup) {
  std::error_code unreadable;
  return fs::exists(cgroup / kUnifiedFile, unreadable);
}

Result<operations::CfsQuota> read_unified(const fs::path& file) {
  std::ifstream in(file);
  std::string quota;
  operations::CfsQuota read{-1, kUsualPeriodUs};
  if (!(in >> quota)) return cannot_read(file);
  in >> read.period_us;
  if (quota == "max") return read;
  std::istringstream number(quota);
  if (!(number >> read.quota_us) || !number.eof()) return cannot_read(file);
  return read;
}

Result<std::int64_t> read_one(const fs::path& file) {
  std::ifstream in(file);
  std::int64_t number = 0;
  if (!(in >> number)) return cannot_read(file);
  return number;
}

/// Returns true if the pod has more than its containers may use that have a limit: then the limit is the pod's own.
bool is_more_than(const operations::CfsQuota& quota, std::int64_t milli) {
  return operations::cpu_limit_milli(quota.quota_us, quota.period_us) > milli;
}

}  // namespace

Result<operations::CfsQuota> read_quota(const fs::path& cgroup) {
  if (is_unified(cgroup)) return read_unified(cgroup / kUnifiedFile);
  const Result<std::int64_t> quota = read_one(cgroup / kLegacyQuotaFile);
  if (!quota) return quota.error();
  const Result<std::int64_t> period = read_one(cgroup / kLegacyPeriodFile);
  if (!period) return period.error();
  return operations::CfsQuota{*quota, *period};
}

Status write_quota(const fs::path& cgroup, const operations::CfsQuota& quota) {
  if (is_unified(cgroup)) {
    const std::string most = quota.quota_us < 0 ? "max" : std::to_string(quota.quota_us);
    return write_cgroup_file(cgroup / kUnifiedFile, fmt::format("{} {}", most, quota.period_us));
  }
  const Result<std::int64_t> period = read_one(cgroup / kLegacyPeriodFile);
  if (!period) return period.error();
  if (*period != quota.period_us) {
    if (Status set = write_cgroup_file(cgroup / kLegacyPeriodFile, std::to_string(quota.period_us)); !set) return set;
  }
  return write_cgroup_file(cgroup / kLegacyQuotaFile, std::to_string(quota.quota_us));
}

PodQuotas::PodQuotas(Deps deps)
    : deps_(std::move(deps)),
      pods_(deps_.hierarchy ? std::optional(CpusetHierarchy{.directory = *deps_.hierarchy}) : std::nullopt) {}

void PodQuotas::on_durable(const Transition& transition) {
  if (!is_reconciled_ || !deps_.hierarchy) return;
  std::set<std::string> concerned;
  for (const Change& change : transition.changes) {
    const Allocation& changed = change.after ? *change.after : *change.before;
    const std::string& uid = changed.workload.key.pod_uid;
    if (changed.quota == QuotaState::kDropped) watched_.insert(uid);
    if (watched_.count(uid) != 0) concerned.insert(uid);
  }
  for (const std::string& uid : concerned) check_pod(uid);
}

void PodQuotas::on_reconciled() {
  if (!deps_.hierarchy) return;
  is_reconciled_ = true;
  const Ledger& ledger = deps_.committer.ledger();
  for (const auto& [key, allocation] : ledger.allocations()) {
    if (allocation.quota != QuotaState::kAsAsked) watched_.insert(key.pod_uid);
  }
  for (const auto& [id, pod] : ledger.pods()) {
    if (pod.dropped_quota) watched_.insert(pod.sandbox.pod_uid);
  }
  check();
}

void PodQuotas::check() {
  const std::set<std::string> watched = watched_;
  for (const std::string& uid : watched) {
    const auto missing = missing_.find(uid);
    if (missing != missing_.end() && missing->second > 0) {
      --missing->second;
    } else {
      check_pod(uid);
    }
  }
}

std::map<std::string, std::string> PodQuotas::failures() const {
  std::map<std::string, std::string> by_name;
  for (const auto& [uid, failure] : failures_) by_name[failure.pod] = failure.why;
  return by_name;
}

/// Gathers the quotas and limits of the pod's containers. One that has ended does not run and does not count: its next
/// attempt does.
PodQuotas::Containers PodQuotas::containers_of(const std::string& uid) const {
  Containers containers;
  const auto& all = deps_.committer.ledger().allocations();
  for (auto it = all.lower_bound(placement::ContainerKey{uid, {}, 0, {}}); it != all.end(); ++it) {
    const auto& [key, allocation] = *it;
    if (key.pod_uid != uid) break;
    if (allocation.is_kept()) continue;
    const std::int64_t limit = allocation.workload.demand.cpu_limit_milli;
    if (allocation.quota == QuotaState::kDropped) {
      containers.has_dropped = true;
      containers.limit_milli += limit;
    } else if (limit > 0 || is_unknown(allocation.workload)) {
      containers.has_limited = true;
    } else if (!allocation.is_exclusive()) {
      containers.shares_freely = true;
    }
  }
  return containers;
}

/// A pod has a quota only where all its containers have one, or where it has a limit of its own: that one is the only
/// one that binds a container without.
PodQuotas::Wish PodQuotas::wish_for(const Containers& containers, const operations::CfsQuota& now) {
  if (containers.has_limited) return Wish::kGivenBack;
  if (!containers.has_dropped) return Wish::kNone;
  const bool is_own_limit = containers.shares_freely && is_more_than(now, containers.limit_milli);
  return is_own_limit ? Wish::kGivenBack : Wish::kDropped;
}

const Pod* PodQuotas::find_pod(const std::string& uid) const {
  const Ledger& ledger = deps_.committer.ledger();
  const Pod* noted = ledger.find_pod_if(uid, "", [](const Pod& pod) { return pod.dropped_quota.has_value(); });
  return noted != nullptr ? noted : ledger.find_pod_if(uid, "", [](const Pod&) { return true; });
}

void PodQuotas::check_pod(const std::string& uid) {
  if (being_noted_.count(uid) != 0) return;
  const Pod* pod = find_pod(uid);
  const Containers containers = containers_of(uid);
  if (!containers.has_dropped && (pod == nullptr || !pod->dropped_quota)) return forget(uid);
  // Its cgroup may be gone by now.
  const bool has_ended = !containers.has_dropped && !containers.has_limited;
  if (pod != nullptr) note_result(*pod, has_ended ? Status() : bring_in_line(*pod, containers));
}

void PodQuotas::forget(const std::string& uid) {
  watched_.erase(uid);
  cgroups_.erase(uid);
  missing_.erase(uid);
  failures_.erase(uid);
}

Status PodQuotas::bring_in_line(const Pod& pod, const Containers& containers) {
  const Result<fs::path> cgroup = cgroup_of(pod.sandbox.pod_uid);
  if (!cgroup) return cgroup.error();
  const Result<operations::CfsQuota> now = read_quota(*cgroup);
  if (!now) return now.error();
  // While there is none, what it was tells whose limit it is.
  const bool has_quota = now->quota_us > 0;
  switch (wish_for(containers, has_quota ? *now : pod.dropped_quota.value_or(*now))) {
    case Wish::kNone:
      return {};
    case Wish::kDropped:
      return has_quota ? drop(pod, *cgroup, *now) : Status();
    case Wish::kGivenBack:
      return pod.dropped_quota ? give_back(pod, *cgroup, *now) : Status();
  }
  return {};
}

Status PodQuotas::drop(const Pod& pod, const fs::path& cgroup, const operations::CfsQuota& now) {
  if (pod.dropped_quota == now) return write_quota(cgroup, {-1, now.period_us});
  note(pod.sandbox.pod_uid, now);
  return {};
}

/// Leaves alone a quota that somebody has set meanwhile.
Status PodQuotas::give_back(const Pod& pod, const fs::path& cgroup, const operations::CfsQuota& now) {
  if (now.quota_us <= 0) {
    if (Status written = write_quota(cgroup, *pod.dropped_quota); !written) return written;
  }
  note(pod.sandbox.pod_uid, std::nullopt);
  return {};
}

Result<fs::path> PodQuotas::cgroup_of(const std::string& uid) {
  std::error_code unreadable;
  const auto known = cgroups_.find(uid);
  // It may have been made anew.
  if (known != cgroups_.end() && fs::exists(known->second, unreadable)) return known->second;
  cgroups_.erase(uid);
  missing_.erase(uid);
  Result<fs::path> found = pods_.find(uid);
  if (found) {
    cgroups_[uid] = *found;
  } else {
    missing_[uid] = kChecksWithoutSearch;
  }
  return found;
}

/// Nothing is written before that is durable.
void PodQuotas::note(const std::string& uid, const std::optional<operations::CfsQuota>& dropped) {
  being_noted_.insert(uid);
  deps_.loop.post([this, uid, dropped] {
    deps_.committer.commit(event::PodQuotaDropped{uid, dropped}, [this, uid] {
      being_noted_.erase(uid);
      check_pod(uid);
    });
  });
}

/// Each reason once.
void PodQuotas::note_result(const Pod& pod, const Status& status) {
  const std::string& uid = pod.sandbox.pod_uid;
  if (status) {
    failures_.erase(uid);
    return;
  }
  Failure failure{fmt::format("{}/{}", pod.sandbox.pod_namespace, pod.sandbox.pod_name), status.error().message};
  const auto known = failures_.find(uid);
  const bool is_known = known != failures_.end() && known->second.why == failure.why;
  if (!is_known) {
    deps_.log.warn("the CFS quota of pod {} stays as it is (placement.exclusive-quota): {}", failure.pod, failure.why);
  }
  failures_[uid] = std::move(failure);
}

}  // namespace topolet::engine
