// Brings what the runtime has and what the ledger holds together: at start, after a reconnect, and every so often.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/exits.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/converge/rebalancer.hpp"
#include "core/engine/planning/placer.hpp"

namespace topolet::engine {

/// Lives on the loop's thread. One run at a time; a wish that comes during a run makes one more run after it.
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
    const std::vector<std::string>& placed_handlers;
    bool database_went_back;  ///< what it says of running containers may be old
    std::chrono::milliseconds pending_timeout;
    std::chrono::milliseconds thorough_for;  ///< from the start: how long the runtime is asked where containers are
    Clock clock;
    Log& log;
  };
  using Done = std::function<void(const Status&)>;

  explicit Reconciler(Deps deps) : deps_(std::move(deps)), begun_(deps_.clock.steady()) {}

  /// Lists sandboxes and containers, and then: releases what exited or is gone, checks the CPUs of every container that
  /// it has not told itself since it started, binds creates in doubt, and adopts containers that were made past
  /// topolet. The error is the runtime's.
  void run(Done done);

  /// Releases what has been in doubt for too long, and what was kept long enough for containers that failed.
  void expire();
  bool has_doubts() const;

 private:
  /// What was known when the lists were asked for: only of this may a list say that it is not there.
  struct Pass {
    std::set<std::string> bound;
    std::set<ContainerKey> in_doubt;
    std::vector<std::string> sandboxes;
    std::vector<Sandbox> listed_sandboxes;
    std::vector<ContainerInfo> listed;
    std::vector<ContainerDetail> found;  ///< containers that no allocation is bound to
    std::size_t waiting = 0;
  };
  using PassPtr = std::shared_ptr<Pass>;

  void begin();
  void compare_sandboxes(const PassPtr& pass);
  void compare_containers(const PassPtr& pass);
  void visit(const PassPtr& pass, const ContainerInfo& container);
  void visit_own(const PassPtr& pass, const ContainerInfo& container, const Allocation& own);
  void wait_for_exit(const PassPtr& pass, const std::string& container_id, const Exit& exit);
  void inspect_own(const PassPtr& pass, const ContainerInfo& container);
  void inspect_found(const PassPtr& pass, const ContainerInfo& container, std::uint32_t tries);
  void inspected_own(const PassPtr& pass, const ContainerInfo& container, const Result<ContainerDetail>& detail);
  void open(const PassPtr& pass, const ContainerDetail& detail, Allocation own);
  void finish_one(const PassPtr& pass);
  void adopt_all(const PassPtr& pass);
  void adopt(const PassPtr& pass, const ContainerDetail& detail);
  void adopt_on(const PassPtr& pass, const ContainerDetail& detail, const Workload& workload, const CpuSet& cpus);
  void discover(const PassPtr& pass, const ContainerDetail& detail);
  Workload workload_of(const ContainerDetail& detail) const;
  Workload identify(const ContainerInfo& container) const;
  CpuSet where_it_runs(const ContainerDetail& detail) const;
  bool is_young() const { return deps_.clock.steady() - begun_ < deps_.thorough_for; }
  bool may_be_starting(const ContainerDetail& detail) const;
  std::vector<ContainerKey> overruled_by(const PassPtr& pass, const ContainerKey& key, const CpuSet& cpus) const;
  bool may_keep(const PassPtr& pass, const Workload& workload, const CpuSet& cpus) const;
  void commit_adopted(event::Adopted adopted, const ContainerDetail& detail);
  void end(const Status& status);

  const Deps deps_;
  const std::chrono::steady_clock::time_point begun_;
  bool running_ = false;
  std::vector<Done> waiting_;
  std::vector<Done> current_;
};

}  // namespace topolet::engine
