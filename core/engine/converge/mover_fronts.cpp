// The part of the mover that is for fronts whose runtime waits for the engine, and changes no container meanwhile: what
// is said in answers, and what the kernel is told past the runtime.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/log.hpp"
#include "core/engine/converge/mover.hpp"

namespace topolet::engine {
namespace {

/// The time until it is seen again whether the runtime has carried out what it was told.
constexpr std::chrono::milliseconds kClearDelay{5};

}  // namespace

void Mover::begin_answer(const placement::ContainerKey& created) { in_answer_.insert(created); }

std::vector<operations::NeighbourUpdate> Mover::neighbours_in_answer(const placement::ContainerKey& created) {
  const Ledger& ledger = deps_.committer.ledger();
  std::vector<operations::NeighbourUpdate> updates;
  for (const placement::ContainerKey& key : ledger.neighbours_blocking(created)) {
    const Allocation& neighbour = *ledger.find(key);
    const std::string& id = neighbour.container_id;
    // One whose turn it is not to move yet is told later, by us.
    const bool may_be_told = queues_.has(id) && neighbour.squeeze != Squeeze::kLeftToKernel &&
                             ledger.neighbours_blocking_outside_cycles(key).empty();
    const std::optional<ContainerCpuset> set = may_be_told ? sendable(id) : std::nullopt;
    if (!set) continue;
    note_sent(id, *set);
    told_in_answer_.insert(id);
    updates.push_back({id, *set});
  }
  return updates;
}

void Mover::end_answer(const placement::ContainerKey& created) {
  creating_.erase(created);
  if (in_answer_.erase(created) != 0) unblock_ready();
}

ContainerCpuset Mover::renew(const std::string& container_id, const ContainerCpuset& sent) {
  ContainerCpuset renewed = sent;
  if (const std::optional<ContainerCpuset> now = sendable(container_id)) renewed.cpus &= now->cpus;
  note_coming(container_id, renewed.cpus);
  return renewed;
}

void Mover::note_coming(const std::string& container_id, const CpuSet& cpus) {
  coming_[container_id] = {cpus, deps_.cpusets.container_cpus(container_id) == cpus};
}

/// What was told is done once the kernel shows it.
bool Mover::may_come_to(const std::string& container_id, const CpuSet& cpus) {
  const auto late = late_updates_.find(container_id);
  if (late != late_updates_.end() && late->second.intersects(cpus) && late_update_time(container_id).count() > 0)
    return true;
  const auto coming = coming_.find(container_id);
  if (coming == coming_.end()) return false;
  if (!coming->second.was_there && deps_.cpusets.container_cpus(container_id) == coming->second.cpus) {
    coming_.erase(coming);
    return false;
  }
  return coming->second.cpus.intersects(cpus);
}

std::optional<Error> Mover::obstacle_to_clear(const Allocation& neighbour, const CpuSet& alone, Unstarted unstarted) {
  const std::string name = display_name(neighbour.workload);
  const std::string& id = neighbour.container_id;
  if (neighbour.phase == Phase::kCreated && unstarted == Unstarted::kMayStart)
    return Error{Code::kUnavailable, fmt::format("{} may be about to start on the CPUs", name)};
  const auto set = sendable(id);
  if (!set || set->cpus.intersects(alone) || may_come_to(id, alone))
    return Error{Code::kUnavailable,
                 fmt::format("{} has not left the CPUs yet, and the runtime may still be moving it", name)};
  if (neighbour.phase == Phase::kCreated) return std::nullopt;
  const Status left = set_in_kernel(id, *set);
  if (left) return std::nullopt;
  return Error{left.error().code, fmt::format("{} does not leave the CPUs: {}", name, left.error().message)};
}

Status Mover::clear_in_kernel(const placement::ContainerKey& key, Unstarted unstarted) {
  const CpuSet alone = deps_.committer.ledger().find(key)->dedicated_cpus();
  if (unstarted == Unstarted::kMayStart) {
    for (const auto& [created, told] : creating_) {
      if (created != key && told.intersects(alone))
        return Error{Code::kUnavailable, fmt::format("container {} is being created on the CPUs", created.name)};
    }
  }
  for (const placement::ContainerKey& other : deps_.committer.ledger().neighbours_blocking(key)) {
    const Allocation neighbour = *deps_.committer.ledger().find(other);
    if (const auto obstacle = obstacle_to_clear(neighbour, alone, unstarted)) return *obstacle;
    if (neighbour.phase == Phase::kCreated) continue;
    deps_.committer.commit(event::Converged{other, sendable(neighbour.container_id)->cpus}, Urgency::kSoon);
    // The runtime's record is as it was.
    queues_.invalidate(neighbour.container_id);
  }
  return {};
}

void Mover::await_clear_in_kernel(const placement::ContainerKey& key, std::chrono::milliseconds timeout, Done done) {
  note_unnoticed(key);
  await_clear_until(key, deps_.clock.steady() + timeout, std::move(done));
}

/// `key` is a value, as that of an allocation may not last as long as this.
void Mover::await_clear_until(placement::ContainerKey key, std::chrono::steady_clock::time_point deadline, Done done) {
  // Whoever waits finds out what has become of it.
  if (deps_.committer.ledger().find(key) == nullptr) return done({});
  const Status clear = clear_in_kernel(key, Unstarted::kLeave);
  if (clear || deps_.clock.steady() >= deadline) return done(clear);
  deps_.loop.after(kClearDelay,
                   [this, key, deadline, done = std::move(done)] { await_clear_until(key, deadline, done); });
}

Status Mover::set_in_kernel(const std::string& container_id, const ContainerCpuset& set) {
  note_sent(container_id, set);
  if (deps_.cpusets.is_where(container_id, set)) return {};
  return deps_.cpusets.write_in_kernel(container_id, set.cpus);
}

void Mover::keep_apart_in_kernel(const std::string& container_id) {
  const Ledger& ledger = deps_.committer.ledger();
  const Allocation* allocation = ledger.find_by_container(container_id);
  const auto set = sendable(container_id);
  if (allocation == nullptr || !set) return;
  CpuSet apart = set->cpus;
  for (const placement::ContainerKey& other : ledger.neighbours_blocking(allocation->workload.key))
    apart -= ledger.find(other)->vacating;
  const Status written = deps_.cpusets.write_in_kernel(container_id, apart.empty() ? set->cpus : apart);
  if (!written) deps_.log.warn("container {}: {}", container_id, written.error().message);
}

bool Mover::is_told_in_answer(const placement::ContainerKey& key) const {
  return std::any_of(in_answer_.begin(), in_answer_.end(), [&](const placement::ContainerKey& created) {
    const std::vector<placement::ContainerKey> neighbours = deps_.committer.ledger().neighbours_blocking(created);
    return std::find(neighbours.begin(), neighbours.end(), key) != neighbours.end();
  });
}

}  // namespace topolet::engine
