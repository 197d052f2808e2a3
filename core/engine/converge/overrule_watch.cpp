#include "core/engine/converge/overrule_watch.hpp"

#include <algorithm>

namespace topolet::engine {
namespace {

/// The time until a set that the runtime has accepted is in force.
constexpr std::chrono::seconds kSlowestRuntime{1};
/// The time until topolet knows that CPUs are gone.
constexpr std::chrono::seconds kSlowestNews{10};
/// Whoever sets the CPUs again so soon after a repair answers it.
constexpr std::chrono::minutes kAnswersRepair{1};
/// So many of the sets that a container was told are known: one that takes effect late is older than none of them.
constexpr std::size_t kMostSent = 8;

}  // namespace

/// Returns true if the kernel itself may have put a container there. If its CPUs are all gone, or none were set yet,
/// the kernel has it on those of the cgroup above. By the time of the check the container may have been given others,
/// and others may be online: a container on most of them, or on all but its own, is not taken for somebody else's doing
/// at once.
bool OverruleWatch::may_be_the_kernels(const CpuSet& told, const CpuSet& observed) const {
  const CpuSet& allowed = deps_.committer.ledger().inventory().allowed;
  if (observed.size() < 2) return false;
  const bool is_all_but_its_own = !told.intersects(observed) && (allowed - told).is_subset_of(observed);
  return is_all_but_its_own || 2 * (observed & allowed).size() > allowed.size();
}

OverruleWatch::MachineMark OverruleWatch::machine() const {
  const Ledger& ledger = deps_.committer.ledger();
  return {ledger.inventory().allowed, ledger.topology() == nullptr ? 0 : ledger.topology()->generation};
}

bool OverruleWatch::was_never_told(const Allocation& allocation, const CpuSet& observed) const {
  const CpuSet told = deps_.footprints.of(allocation.container_id) | allocation.placement.cpus | allocation.vacating;
  return !observed.is_subset_of(told);
}

/// Returns true if its cgroup may be set to that by what it was told. It has fewer CPUs than it was told if an update
/// was lost, or came late, or if the kernel has taken some away that were offline for a while.
bool OverruleWatch::was_told(const Allocation& allocation, const CpuSet& configured) const {
  if (was_never_told(allocation, configured)) return false;
  const auto told = told_.find(allocation.container_id);
  if (told == told_.end() || told->second.sent.empty() || told->second.machine != machine()) return true;
  const std::vector<CpuSet>& sent = told->second.sent;
  const bool is_one = std::find(sent.begin(), sent.end(), configured) != sent.end();
  const CpuSet missing = sent.back() - configured;
  return is_one || !configured.is_subset_of(sent.back()) ||
         !missing.is_subset_of(deps_.committer.ledger().inventory().allowed);
}

OverruleWatch::Doing OverruleWatch::doing_of(const Allocation& allocation, const CpuSet& observed) const {
  if (const auto configured = deps_.cpusets.configured_cpus(allocation.container_id)) {
    return was_told(allocation, *configured) ? Doing::kExplained : Doing::kAnotherHand;
  }
  if (!was_never_told(allocation, observed)) return Doing::kExplained;
  return may_be_the_kernels(allocation.placement.cpus, observed) ? Doing::kMaybeKernel : Doing::kUnexplained;
}

bool OverruleWatch::has_come_again(const Allocation& allocation, Doing doing) const {
  if (doing == Doing::kExplained) return false;
  const auto told = told_.find(allocation.container_id);
  const bool is_answer =
      told != told_.end() && told->second.repaired && deps_.clock.steady() - *told->second.repaired < kAnswersRepair;
  if (is_answer) return true;
  if (doing == Doing::kMaybeKernel || !allocation.hand) return false;
  // If its cgroup can be read, another hand can be told from the kernel's own changes when CPUs come and go.
  const bool is_forgiven = told != told_.end() && (told->second.is_forgiven || told->second.machine != machine());
  if (doing == Doing::kUnexplained && is_forgiven) return false;
  const auto ago = deps_.clock.wall() - allocation.hand->repaired_at;
  return ago < kHandComesAgain || (allocation.hand->repairs >= 2 && ago < kHandForgotten);
}

bool OverruleWatch::is_narrowed(const std::string& container_id, const ContainerCpuset& target) const {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr) return false;
  const auto configured = deps_.cpusets.configured_cpus(container_id);
  return configured && *configured != target.cpus && configured->is_subset_of(target.cpus) &&
         !was_told(*allocation, *configured);
}

void OverruleWatch::commit_seen(const Allocation& allocation, const CpuSet& observed, bool is_ours, bool is_overruled) {
  const bool is_news = is_ours ? !allocation.seen_on.empty() || allocation.overruled
                               : allocation.seen_on != observed || (is_overruled && !allocation.overruled) ||
                                     (allocation.overruled && allocation.overruled->ours_since.count() != 0);
  if (!is_news) return;
  // Nothing waits for it; the next that is written has it too.
  deps_.committer.commit(event::SeenInKernel{allocation.workload.key, observed, is_ours, is_overruled}, Urgency::kSoon);
}

void OverruleWatch::note_seen(const std::string& container_id, const CpuSet& observed, const CpuSet& wanted) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr) return;
  const bool is_ours = observed.is_subset_of(wanted) && !is_narrowed(container_id, {wanted, {}});
  // On the way from CPUs that are still its own.
  if (!is_ours && observed.is_subset_of(wanted | allocation->vacating_alone)) return;
  commit_seen(*allocation, observed, is_ours, false);
}

bool OverruleWatch::note_stray(const std::string& container_id, const CpuSet& observed, Check check) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr || observed.empty()) return false;
  const Doing doing = doing_of(*allocation, observed);
  const bool is_first = check != Check::kLater &&
                        (doing == Doing::kAnotherHand || (doing == Doing::kUnexplained && check == Check::kFirst));
  const bool is_overruled = allocation->overruled || is_first || has_come_again(*allocation, doing);
  if (const auto told = told_.find(container_id); told != told_.end()) {
    told->second.was_put = doing == Doing::kAnotherHand || doing == Doing::kUnexplained;
  }
  commit_seen(*allocation, observed, false, is_overruled);
  return is_overruled;
}

std::optional<std::chrono::milliseconds> OverruleWatch::wait_before_repair(const Allocation& allocation,
                                                                           const ContainerCpuset& target) const {
  const auto told = told_.find(allocation.container_id);
  if (!allocation.overruled || told == told_.end() || told->second.target != target) return std::nullopt;
  const auto passed = deps_.clock.steady() - told->second.at;
  if (passed >= kPauseBetweenRepairs) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(kPauseBetweenRepairs - passed);
}

void OverruleWatch::note_told(const Allocation& allocation, const ContainerCpuset& target) {
  Told& told = told_[allocation.container_id];
  if (const MachineMark now = machine(); told.machine != now) {
    told.repaired.reset();
    told.elsewhere_since.reset();
    told.is_forgiven = !told.sent.empty();
    told.machine = now;
  }
  if (told.target != target) told.elsewhere_since.reset();
  told.target = target;
  note_sent(allocation.container_id, target.cpus);
  told.at = deps_.clock.steady();
  told.is_repair = allocation.overruled || !allocation.seen_on.empty();
}

void OverruleWatch::note_in_force(const std::string& container_id, const ContainerCpuset& target) {
  const auto told = told_.find(container_id);
  if (told == told_.end() || told->second.target != target) return;
  told->second.elsewhere_since.reset();
  if (!told->second.is_repair) return;
  told->second.repaired = deps_.clock.steady();
  if (!std::exchange(told->second.was_put, false)) return;
  told->second.is_forgiven = false;
  commit_repaired(container_id, target.cpus);
}

void OverruleWatch::commit_repaired(const std::string& container_id, const CpuSet& cpus) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  if (allocation == nullptr) return;
  deps_.committer.commit(event::SeenInKernel{allocation->workload.key, cpus, true, false, true}, Urgency::kSoon);
}

void OverruleWatch::note_sent(const std::string& container_id, const CpuSet& cpus) {
  Told& told = told_[container_id];
  if (told.sent.empty()) told.machine = machine();
  std::erase(told.sent, cpus);
  told.sent.push_back(cpus);
  if (told.sent.size() > kMostSent) told.sent.erase(told.sent.begin());
}

void OverruleWatch::note_elsewhere(const std::string& container_id, const ContainerCpuset& target,
                                   const CpuSet& observed) {
  const Allocation* allocation = deps_.committer.ledger().find_by_container(container_id);
  const auto told = told_.find(container_id);
  if (allocation == nullptr || told == told_.end() || told->second.target != target) return;
  if (!told->second.elsewhere_since) told->second.elsewhere_since = deps_.clock.steady();
  const Doing doing = doing_of(*allocation, observed);
  if (doing == Doing::kAnotherHand) told->second.was_put = true;
  const bool is_slow = doing != Doing::kAnotherHand && may_be_the_kernels(target.cpus, observed);
  const bool is_overruled =
      deps_.clock.steady() - *told->second.elsewhere_since >= (is_slow ? kSlowestNews : kSlowestRuntime);
  commit_seen(*allocation, observed, false, is_overruled);
}

}  // namespace topolet::engine
