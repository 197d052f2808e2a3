// Compares the ledger with the runtime and repairs the differences: at start, after a reconnect, and every few seconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/exits.hpp"
#include "core/engine/converge/kubelet_cpus.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/placed_handlers.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/planning/placer.hpp"

namespace topolet::engine {

/// Lives on the loop's thread. One run at a time; a request during a run causes one more run after it.
class Reconciler {
 public:
  struct Deps {
    Loop& loop;
    Committer& committer;
    const Placer& placer;
    CpusetWriter& cpusets;
    Mover& mover;
    Exits& exits;
    Rebalancer& rebalancer;
    PlacedHandlers& placed_handlers;
    bool store_regressed;  ///< what it says of running containers may be old
    std::chrono::milliseconds doubt_timeout;
    std::chrono::milliseconds startup_window;  ///< from the start: how long the runtime is asked where containers are
    Clock clock;
    Log& log;
    const KubeletCpus& kubelet_cpus;  ///< given before the start
    /// The reason why the ledger may not know the containers that topolet had created before the start; empty: it does.
    std::string why_unknown = {};
  };
  using Done = std::function<void(const Status&)>;

  explicit Reconciler(Deps deps) : deps_(std::move(deps)), started_at_(deps_.clock.steady()) {}

  /// Lists containers, and then sandboxes. Then releases containers that exited or are gone, checks the CPUs of the
  /// others, binds creates in doubt, and adopts containers that were created without topolet. A container that does not
  /// run and has no ready sandbox can never run, and holds nothing. The error is the runtime's.
  void run(Done done);

  /// Releases allocations that have been in doubt for too long, and those kept long enough for failed containers.
  void expire();
  bool has_creates_in_doubt() const;

 private:
  /// The containers known before the lists were requested: only for these does absence from a list mean that they are
  /// gone.
  struct ReconcilePass {
    std::set<std::string> bound;
    std::set<placement::ContainerKey> in_doubt;
    std::vector<placement::ContainerKey> kept;
    std::vector<std::string> sandboxes;
    std::vector<operations::Sandbox> listed_sandboxes;
    std::vector<operations::ContainerInfo> listed;
    std::vector<operations::ContainerDetail> found;      ///< containers that no allocation is bound to
    std::vector<operations::ContainerInfo> undescribed;  ///< the same, where the runtime does not say what they are
    /// Opens the queues of containers of an earlier run of the daemon, once it is known what else runs: what they are
    /// told may be old, and another container may have been given some of it.
    std::vector<std::function<void()>> open_queues;
    std::size_t waiting = 0;
    bool is_first = false;  ///< what is listed was there at the start

    /// True too where it is not known whose container it is.
    bool has_ready_pod(const std::string& sandbox_id) const;
    /// True too where it is not known what became of it.
    bool may_run(const placement::ContainerKey& key) const;
  };
  using PassPtr = std::shared_ptr<ReconcilePass>;

  /// The runtime's record of a container, as far as it tells.
  struct Recorded {
    std::string id;
    std::optional<CpuSet> cpus;
    std::optional<std::int64_t> quota_us;

    explicit Recorded(const operations::ContainerDetail& detail)
        : id(detail.info.id),
          cpus(detail.tells_cpuset ? std::optional(detail.spec_cpus) : std::nullopt),
          quota_us(detail.told.cpu_quota_us) {}
  };

  void expire_doubts();
  void expire_waiting();
  void expire_kept();
  void begin();
  void compare_sandboxes(const PassPtr& pass);
  void compare_containers(const PassPtr& pass);
  void reconcile_container(const PassPtr& pass, const operations::ContainerInfo& container);
  void reconcile_known(const PassPtr& pass, const operations::ContainerInfo& container, const Allocation& own);
  void report_exit(const PassPtr& pass, const std::string& container_id, const Exit& exit);
  void inspect_known(const PassPtr& pass, const operations::ContainerInfo& container);
  void inspect_unbound(const PassPtr& pass, const operations::ContainerInfo& container, std::uint32_t tries);
  void on_known_inspected(const PassPtr& pass, const operations::ContainerInfo& container,
                          const Result<operations::ContainerDetail>& detail);
  void open_known(const PassPtr& pass, const operations::ContainerDetail& detail, Allocation own);
  bool holds_nothing(const PassPtr& pass, const operations::ContainerInfo& container, operations::ContainerState state);
  void release_without_pod(const PassPtr& pass);
  void finish_one(const PassPtr& pass);
  void adopt_all(const PassPtr& pass);
  void adopt(const PassPtr& pass, const operations::ContainerDetail& detail);
  void place_foreign(const PassPtr& pass, const operations::ContainerDetail& detail, const Allocation& own);
  bool share_what_it_has(const placement::Workload& workload, const CpuSet& runs_on,
                         placement::Decision& decision) const;
  void learn(const operations::ContainerDetail& detail, const Allocation& own);
  void inspect_unknown(const PassPtr& pass, const operations::ContainerInfo& container);
  void warn_once_a_pod(const placement::Workload& workload, const std::string& warning) const;
  void inspect_foreign(const PassPtr& pass, const operations::ContainerInfo& container);
  void adopt_exclusively(const PassPtr& pass, const operations::ContainerDetail& detail,
                         const placement::Workload& workload, const CpuSet& cpus, const char* which = "it runs on");
  void bind_discovered(const PassPtr& pass, const operations::ContainerDetail& detail);
  placement::Workload workload_of(const operations::ContainerDetail& detail) const;
  placement::Workload identify(const operations::ContainerInfo& container) const;
  bool is_of_another(const placement::ContainerKey& key, const std::string& container_id) const;
  CpuSet observed_cpus(const operations::ContainerDetail& detail) const;
  bool is_applied(const Recorded& recorded, const ContainerCpuset& desired) const;
  bool is_recorded_elsewhere(const Recorded& recorded, const ContainerCpuset& desired) const;
  bool is_in_startup_window() const { return deps_.clock.steady() - started_at_ < deps_.startup_window; }
  bool may_be_starting(const operations::ContainerDetail& detail) const;
  std::vector<placement::ContainerKey> overruled_by(const PassPtr& pass, const operations::ContainerDetail& detail,
                                                    const placement::ContainerKey& key, const CpuSet& cpus) const;
  bool is_known_from_kubelet(const placement::ContainerKey& key) const {
    return deps_.kubelet_cpus.contains({key.pod_uid, key.name});
  }
  CpuSet cpus_from_kubelet(const PassPtr& pass, const operations::ContainerDetail& detail,
                           const placement::Workload& workload, const CpuSet& runs_on) const;
  bool may_keep_exclusively(const PassPtr& pass, const operations::ContainerDetail& detail,
                            const placement::Workload& workload, const CpuSet& cpus) const;
  std::string origin_of(const PassPtr& pass, const operations::ContainerDetail& detail) const;
  bool runs_alone(const PassPtr& pass, const operations::ContainerDetail& detail, const CpuSet& cpus) const;
  std::optional<placement::Workload> rounded_before(const PassPtr& pass, const operations::ContainerDetail& detail,
                                                    const placement::Workload& workload, const CpuSet& cpus) const;
  NodeSet bound_memory_nodes(const operations::ContainerDetail& detail) const;
  /// `runs_on`: the CPUs on which it was found.
  Plan plan_shared(const operations::ContainerDetail& detail, const placement::Workload& workload,
                   const CpuSet& runs_on) const;
  void commit_adopted(event::Adopted adopted, const operations::ContainerDetail& detail);
  void take_over_memory_high(const placement::ContainerKey& key, const std::string& container_id);
  void end(const Status& status);

  const Deps deps_;
  const std::chrono::steady_clock::time_point started_at_;
  bool running_ = false;
  bool has_compared_ = false;               ///< the runtime has answered once
  std::set<std::string> there_at_start_;    ///< containers that it could not describe then, by id
  std::set<std::string> told_without_pod_;  ///< containers that hold nothing, by id; of each that was logged once
  std::vector<Done> next_callbacks_;
  std::vector<Done> current_callbacks_;
};

}  // namespace topolet::engine
