// Controls the CFS quota of pods' cgroups, which the kubelet sets to the sum of the containers' limits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/engine/converge/pod_cgroups.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/committer.hpp"
#include "core/operations/demand.hpp"

namespace topolet::engine {

/// Reads the files of a cgroup: cpu.max (v2), or cpu.cfs_quota_us and cpu.cfs_period_us (v1).
Result<operations::CfsQuota> read_quota(const std::filesystem::path& cgroup);
/// Its burst, if it has one, stays.
Status write_quota(const std::filesystem::path& cgroup, const operations::CfsQuota& quota);

/// Takes the quota of a pod off while all its containers that have a CPU limit have CPUs of their own and no quota
/// (QuotaState::kDropped), as theirs would be in vain otherwise, and gives it back when that is over. The former quota
/// is noted first (Pod::dropped_quota), so that a later topoletd can give it back. Whenever the kubelet has set another
/// one, that is noted in its place. Lives on the loop's thread.
class PodQuotas final : public Observer {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    std::optional<std::filesystem::path> hierarchy;  ///< as ProcessCgroups::quota_hierarchy(); none: nothing is done
    Log& log;
  };
  explicit PodQuotas(Deps deps);

  void on_durable(const Transition& transition) override;
  /// The ledger is known to be right.
  void on_reconciled() override;
  /// Somebody may have written the files.
  void check();

  /// Returns why a quota could not be taken off or given back, by NAMESPACE/POD.
  std::map<std::string, std::string> failures() const;

 private:
  /// The quotas and limits of the pod's containers.
  struct Containers {
    bool has_dropped = false;      ///< one has no quota, by topolet's hand
    bool has_limited = false;      ///< one has a quota, or nobody knows whether it has
    bool shares_freely = false;    ///< one without a limit shares CPUs
    std::int64_t limit_milli = 0;  ///< of those that have no quota
  };
  enum class Wish : std::uint8_t { kNone, kDropped, kGivenBack };

  Containers containers_of(const std::string& uid) const;
  static Wish wish_for(const Containers& containers, const operations::CfsQuota& now);
  const Pod* find_pod(const std::string& uid) const;
  void forget(const std::string& uid);
  void check_pod(const std::string& uid);
  Status bring_in_line(const Pod& pod, const Containers& containers);
  Status drop(const Pod& pod, const std::filesystem::path& cgroup, const operations::CfsQuota& now);
  Status give_back(const Pod& pod, const std::filesystem::path& cgroup, const operations::CfsQuota& now);
  Result<std::filesystem::path> cgroup_of(const std::string& uid);
  void note(const std::string& uid, const std::optional<operations::CfsQuota>& dropped);
  void note_result(const Pod& pod, const Status& status);

  Deps deps_;
  PodCgroups pods_;
  bool is_reconciled_ = false;
  std::set<std::string> watched_;                         ///< uids of pods that this may be about
  std::set<std::string> being_noted_;                     ///< uids of pods whose note is not durable yet
  std::map<std::string, std::filesystem::path> cgroups_;  ///< by pod uid
  std::map<std::string, std::uint32_t> missing_;  ///< by pod uid: the checks left without a search for its cgroup
  struct Failure {
    std::string pod;  ///< NAMESPACE/POD
    std::string why;
  };
  std::map<std::string, Failure> failures_;  ///< by pod uid
};

}  // namespace topolet::engine
