// Takes memory nodes from running containers that are to keep only others.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "core/base/clock.hpp"
#include "core/base/log_fwd.hpp"
#include "core/base/result.hpp"
#include "core/engine/converge/cpuset_writer.hpp"
#include "core/engine/converge/mover.hpp"
#include "core/engine/loop.hpp"
#include "core/engine/state/committer.hpp"

namespace topolet::engine {

/// Narrows the memory nodes of one container at a time to Allocation::mems_to_keep. The kernel moves its memory while
/// the write blocks, so that a thread of its own writes to the cgroup, and nothing waits for it: it begins when nothing
/// is under way for the container, and what comes meanwhile goes on. The runtime is told when it is done. Where the
/// cgroup is not known, the runtime is told at once.
///
/// Lives on the loop's thread.
class MemoryNarrower final : public Observer {
 public:
  using Work = std::function<void()>;
  /// Starts a thread that ends with the work; UNAVAILABLE if none can be started.
  static Status run_on_own_thread(Work work);

  struct Deps {
    Loop& loop;
    Committer& committer;
    CpusetWriter& cpusets;
    Mover& mover;
    Clock clock;
    Log& log;
    std::function<Status(Work)> run_apart = &run_on_own_thread;
  };
  /// Subscribes itself, and has the committer measure the memory that containers leave behind.
  explicit MemoryNarrower(Deps deps);
  /// Does not wait for a write that is under way.
  ~MemoryNarrower() override;
  MemoryNarrower(const MemoryNarrower&) = delete;
  MemoryNarrower& operator=(const MemoryNarrower&) = delete;

  /// Begins with a container if there is one to narrow, and none is under way. Does what could not be done before, too.
  void check();

  void on_durable(const Transition& transition) override;

 private:
  struct Posting;

  bool is_due(const Allocation& allocation) const;
  void begin(const Allocation& allocation);
  void write(const Allocation& allocation, const std::filesystem::path& cgroup);
  void on_narrowed(const placement::ContainerKey& key, const NodeSet& mems, const Status& status);
  void schedule_check();

  const Deps deps_;
  const std::shared_ptr<Posting> posting_;
  bool is_under_way_ = false;
  bool is_scheduled_ = false;
  std::map<placement::ContainerKey, std::chrono::steady_clock::time_point> retry_at_;  ///< of those where it failed
};

}  // namespace topolet::engine
