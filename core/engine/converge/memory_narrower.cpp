#include "core/engine/converge/memory_narrower.hpp"

#include <pthread.h>

#include <algorithm>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/mutex.hpp"
#include "core/base/text.hpp"
#include "core/engine/converge/cpuset_files.hpp"

namespace topolet::engine {
namespace {

constexpr std::chrono::minutes kRetry{1};

}  // namespace

/// The way from the thread that writes to the loop. The thread may still write when the engine has ended.
struct MemoryNarrower::Posting {
  explicit Posting(Loop& its_loop) : loop(&its_loop) {}

  void post(std::function<void()> work) TOPOLET_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (loop != nullptr) loop->post(std::move(work));
  }
  void end() TOPOLET_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    loop = nullptr;
  }

  Mutex mutex;
  Loop* loop TOPOLET_GUARDED_BY(mutex);
};

Status MemoryNarrower::run_on_own_thread(Work work) {
  try {
    std::thread thread(std::move(work));
    ::pthread_setname_np(thread.native_handle(), "topolet-memory");
    thread.detach();
  } catch (const std::system_error& error) {
    return Error{Code::kUnavailable, error.what()};
  }
  return {};
}

MemoryNarrower::MemoryNarrower(Deps deps) : deps_(std::move(deps)), posting_(std::make_shared<Posting>(deps_.loop)) {
  deps_.committer.subscribe(*this);
  deps_.committer.set_measure_memory([&cpusets = deps_.cpusets](const std::string& container_id, const NodeSet& nodes) {
    return cpusets.memory_on(container_id, nodes);
  });
}

MemoryNarrower::~MemoryNarrower() { posting_->end(); }

void MemoryNarrower::on_durable(const Transition& transition) {
  const bool any = std::any_of(transition.changes.begin(), transition.changes.end(), [](const Change& change) {
    return change.after && !change.after->mems_to_keep.empty();
  });
  if (any) schedule_check();
}

void MemoryNarrower::schedule_check() {
  if (std::exchange(is_scheduled_, true)) return;
  deps_.loop.post([this] {
    is_scheduled_ = false;
    check();
  });
}

bool MemoryNarrower::is_due(const Allocation& allocation) const {
  if (allocation.mems_to_keep.empty() || allocation.phase != Phase::kRunning || allocation.stopping) return false;
  // It is still on its way to the CPUs beside that memory.
  const std::string& id = allocation.container_id;
  if (!allocation.vacating.empty() || !deps_.mover.has_queue(id) || deps_.mover.is_busy(id)) return false;
  const auto retry = retry_at_.find(allocation.workload.key);
  return retry == retry_at_.end() || deps_.clock.steady() >= retry->second;
}

void MemoryNarrower::check() {
  if (is_under_way_ || !deps_.committer.rules().memory_migrate) return;
  const auto& allocations = deps_.committer.ledger().allocations();
  std::erase_if(retry_at_, [&](const auto& retry) { return allocations.find(retry.first) == nullptr; });
  const auto due =
      std::find_if(allocations.begin(), allocations.end(), [this](const auto& entry) { return is_due(entry.second); });
  if (due != allocations.end()) begin(due->second);
}

void MemoryNarrower::begin(const Allocation& allocation) {
  if (const auto cgroup = deps_.cpusets.cgroup_of(allocation.container_id)) return write(allocation, *cgroup);
  deps_.committer.commit(event::MemoryMoved{allocation.workload.key, NodeSet(allocation.mems_to_keep)});
  schedule_check();
}

void MemoryNarrower::write(const Allocation& allocation, const std::filesystem::path& cgroup) {
  const placement::ContainerKey key = allocation.workload.key;
  const NodeSet mems = allocation.mems_to_keep;
  is_under_way_ = true;
  const Status begun =
      deps_.run_apart([this, posting = posting_, key, mems, cgroup, is_v1 = deps_.cpusets.has_v1_cpusets()] {
        const Status status = move_memory(cgroup, mems, is_v1);
        posting->post([this, key, mems, status] { on_narrowed(key, mems, status); });
      });
  if (!begun) on_narrowed(key, mems, begun);
}

void MemoryNarrower::on_narrowed(const placement::ContainerKey& key, const NodeSet& mems, const Status& status) {
  is_under_way_ = false;
  const Allocation* allocation = deps_.committer.ledger().find(key);
  // Meanwhile it may have ended, or been moved elsewhere.
  if (allocation != nullptr && allocation->mems_to_keep == mems) {
    if (status) {
      retry_at_.erase(key);
      deps_.committer.commit(event::MemoryMoved{key, mems});
    } else {
      retry_at_[key] = deps_.clock.steady() + kRetry;
      deps_.log.warn("container {} keeps memory nodes besides {} for now: {}", display_name(allocation->workload),
                     named("node", mems), status.error().message);
    }
  }
  schedule_check();
}

}  // namespace topolet::engine
