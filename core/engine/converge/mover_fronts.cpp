// The part of the mover that is for fronts whose runtime waits for the engine, and changes no container meanwhile: what
// is said in answers, and what the kernel is told past the runtime.
#include <fmt/format.h>

#include <algorithm>

#include "core/base/log.hpp"
#include "core/engine/converge/mover.hpp"

namespace topolet::engine {

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
  if (in_answer_.erase(created) != 0) unblock_ready();
}

ContainerCpuset Mover::renew(const std::string& container_id, const ContainerCpuset& sent) {
  ContainerCpuset renewed = sent;
  const std::optional<ContainerCpuset> now = sendable(container_id);
  if (now && now->cpus.intersects(sent.cpus)) renewed.cpus &= now->cpus;
  renewed_[container_id] = renewed.cpus;
  return renewed;
}

Status Mover::clear_in_kernel(const placement::ContainerKey& key) {
  const CpuSet alone = deps_.committer.ledger().find(key)->dedicated_cpus();
  for (const placement::ContainerKey& other : deps_.committer.ledger().neighbours_blocking(key)) {
    const Allocation neighbour = *deps_.committer.ledger().find(other);
    if (neighbour.phase == Phase::kCreated) continue;
    const std::string& id = neighbour.container_id;
    const auto set = sendable(id);
    const auto renewed = renewed_.find(id);
    const bool may_come_back = renewed != renewed_.end() && renewed->second.intersects(alone);
    if (!set || set->cpus.intersects(alone) || may_come_back)
      return Error{Code::kUnavailable,
                   fmt::format("{} has not left the CPUs yet, and the runtime may still be moving it",
                               display_name(neighbour.workload))};
    if (Status left = set_in_kernel(id, *set); !left)
      return Error{left.error().code, fmt::format("{} does not leave the CPUs: {}", display_name(neighbour.workload),
                                                  left.error().message)};
    deps_.committer.commit(event::Converged{other, set->cpus}, Urgency::kSoon);
    // The runtime's record is as it was.
    queues_.invalidate(id);
  }
  return {};
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
