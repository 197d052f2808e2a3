#include "core/engine/converge/stuck_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.hpp"

namespace topolet::engine {
namespace {

/// As many as those who wait for it are told after.
constexpr std::uint32_t kRefusalsToCount = 3;
/// The time after which an unanswered update is not waited for any more.
constexpr std::chrono::seconds kLongestAnswer{10};
constexpr std::chrono::seconds kShortestRetry{10};
constexpr std::chrono::minutes kLongestRetryOfStuck{1};

/// They say something of the runtime, not of the container.
bool is_of_runtime(Code code) { return code == Code::kUnavailable || code == Code::kCancelled; }

}  // namespace

void StuckWatch::note_told(const std::string& container_id, const ContainerCpuset& target) {
  Attempt& attempt = attempts_[container_id];
  attempt.target = target;
  attempt.told_at = deps_.clock.steady();
  attempt.is_under_way = true;
}

void StuckWatch::note_taken(const std::string& container_id) { attempts_.erase(container_id); }

void StuckWatch::note_failed(const std::string& container_id, const ContainerCpuset& target, const Error& error) {
  Attempt& attempt = attempts_[container_id];
  attempt.is_under_way = false;
  attempt.error = error;
  const bool has_answered = error.code != Code::kDeadlineExceeded;
  attempt.is_in_doubt = attempt.is_in_doubt || !has_answered || is_of_runtime(error.code);
  if (has_answered && !is_of_runtime(error.code)) ++attempt.refusals;
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  const bool is_trial = allocation != nullptr && allocation->stuck && !is_of_runtime(error.code) &&
                        allocation->stuck->next_trial <= deps_.clock.wall();
  if (is_trial) commit_stuck(*allocation, target.cpus, error.message);
}

void StuckWatch::note_is_on(const std::string& container_id, const CpuSet& cpus) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || !allocation->stuck) return;
  const CpuSet left = allocation->stuck->cpus - cpus;
  if (left.empty()) return;
  deps_.committer.commit(event::CameLoose{allocation->workload.key, fmt::format("it has left {}", named("CPU", left))},
                         Urgency::kSoon);
}

bool StuckWatch::is_in_the_way_for_good(const Allocation& allocation, const Attempt& attempt, bool long_enough) const {
  if (attempt.refusals >= (allocation.stuck ? 1U : kRefusalsToCount)) return true;
  const bool is_silent = attempt.is_under_way && deps_.clock.steady() - attempt.told_at >= kLongestAnswer;
  return long_enough && (is_silent || attempt.error.code == Code::kDeadlineExceeded);
}

void StuckWatch::note_waited_in_vain(const placement::ContainerKey& key, bool long_enough) {
  for (const placement::ContainerKey& other : deps_.committer.ledger().neighbours_blocking(key)) {
    const Allocation* allocation = deps_.committer.ledger().find(other);
    if (allocation == nullptr || allocation->overruled) continue;
    const auto attempt = attempts_.find(allocation->container_id);
    if (attempt == attempts_.end() || !is_in_the_way_for_good(*allocation, attempt->second, long_enough)) continue;
    const std::string& why = attempt->second.error.message;
    commit_stuck(*allocation, attempt->second.target.cpus, why.empty() ? "the runtime has not answered for 10 s" : why);
  }
}

/// Commits that a container is stuck. If cgroups inside it keep it on CPUs, it is stuck on just these: it can leave the
/// others.
void StuckWatch::commit_stuck(const Allocation& allocation, const CpuSet& target, const std::string& why) {
  const std::string& id = allocation.container_id;
  const CpuSet pinned = deps_.cpusets.pinned_by_nested(id);
  CpuSet cpus = pinned;
  if (pinned.is_subset_of(target)) {
    cpus = deps_.cpusets.container_cpus(id).value_or(allocation.placement.cpus | allocation.vacating |
                                                     deps_.footprints.of(id));
  }
  deps_.committer.commit(event::FoundStuck{allocation.workload.key, std::move(cpus), why}, Urgency::kSoon);
}

bool StuckWatch::is_refused(const std::string& container_id) const {
  const auto attempt = attempts_.find(container_id);
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (attempt == attempts_.end() || allocation == nullptr || attempt->second.is_in_doubt) return false;
  return attempt->second.refusals >= kRefusalsToCount || (allocation->stuck && attempt->second.refusals > 0);
}

std::optional<std::chrono::milliseconds> StuckWatch::wait_before_retry(const std::string& container_id) const {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || !allocation->stuck) return std::nullopt;
  return std::clamp<std::chrono::milliseconds>(allocation->stuck->next_trial - deps_.clock.wall(), kShortestRetry,
                                               kLongestRetryOfStuck);
}

std::vector<placement::ContainerKey> StuckWatch::due() const {
  std::vector<placement::ContainerKey> keys;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    const bool is_tried = allocation.stuck && allocation.phase == Phase::kRunning && !allocation.overruled;
    if (is_tried && allocation.stuck->next_trial <= deps_.clock.wall()) keys.push_back(key);
  }
  return keys;
}

ContainerCpuset StuckWatch::trial_of(const Allocation& allocation, const ContainerCpuset& agreed) {
  const CpuSet kept = allocation.stuck ? allocation.stuck->cpus & agreed.cpus : CpuSet();
  ContainerCpuset trial = agreed;
  std::size_t leaves = (kept.size() + 1) / 2;
  for (const std::uint32_t cpu : kept) {
    if (leaves == 0 || trial.cpus.size() == 1) break;
    trial.cpus -= CpuSet{cpu};
    --leaves;
  }
  return trial;
}

void StuckWatch::note_tried(const std::string& container_id, const ContainerCpuset& target, const WriteResult& result) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || !allocation->stuck) return;
  if (result.kind == WriteResult::Kind::kVerified) {
    deps_.committer.commit(event::CameLoose{allocation->workload.key, "it can be moved again"}, Urgency::kSoon);
  } else if (result.kind == WriteResult::Kind::kFailed || result.kind == WriteResult::Kind::kElsewhere) {
    commit_stuck(*allocation, target.cpus, result.error.message);
  }
}

}  // namespace topolet::engine
