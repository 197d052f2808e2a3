#include "core/engine/converge/home_relief.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "core/engine/planning/known_load.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

/// Policies take their time, and the loop waits for them: with the others it goes on a second later.
constexpr std::size_t kMostAskedAtOnce = 8;

}  // namespace

bool HomeRelief::has_widened() const {
  const auto& allocations = deps_.committer.ledger().allocations();
  return std::any_of(allocations.begin(), allocations.end(),
                     [](const auto& entry) { return entry.second.is_widened(); });
}

void HomeRelief::check() {
  if (has_ended_) return;
  const load::Source& source = deps_.placer.deps().load;
  const Ledger& ledger = deps_.committer.ledger();
  const std::shared_ptr<const load::Load> load = known_load(source, ledger);
  if (!load && !has_widened()) {
    lasting_ = {};
    return;
  }
  const HomePlanner::Times now{deps_.clock.steady(), deps_.clock.wall()};
  const HomeUse use(ledger, *deps_.placer.topology(), load ? *load : load::Load());
  lasting_.note(ledger, use, now.steady);
  std::erase_if(asked_, [&ledger](const auto& entry) { return ledger.find(entry.first) == nullptr; });
  if (!narrow(use, now)) widen(use, now);
}

/// One that was widened with another configuration is asked about again.
bool HomeRelief::narrow(const HomeUse& use, const HomePlanner::Times& now) {
  std::vector<HomePlanner::Change> changes = planner_.narrowed(use, lasting_, now);
  std::set<placement::ContainerKey> changed;
  for (const HomePlanner::Change& change : changes) changed.insert(change.key);
  std::size_t questions = kMostAskedAtOnce;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (!allocation.is_widened() || allocation.stuck || changed.contains(key)) continue;
    if (was_just_widened(allocation, now.wall)) continue;
    if (is_soft(allocation, questions).value_or(true)) continue;
    changes.push_back(HomePlanner::narrowing(allocation, "its policies do not let it run beside its home any more",
                                             placement::reason_code::kHomeStrict));
  }
  if (changes.empty()) return false;
  deps_.committer.commit(event::HomesWidened{std::move(changes)});
  return true;
}

void HomeRelief::widen(const HomeUse& use, const HomePlanner::Times& now) {
  std::vector<HomePlanner::Change> changes;
  std::size_t questions = kMostAskedAtOnce;
  for (HomePlanner::Change& change : planner_.widened(use, lasting_, now)) {
    const Allocation* allocation = deps_.committer.ledger().find(change.key);
    if (allocation != nullptr && is_soft(*allocation, questions).value_or(false)) changes.push_back(std::move(change));
  }
  if (!changes.empty()) deps_.committer.commit(event::HomesWidened{std::move(changes)});
}

/// Nothing if that is not known yet. `questions`: how many may still be asked.
std::optional<bool> HomeRelief::is_soft(const Allocation& allocation, std::size_t& questions) {
  const placement::ContainerKey& key = allocation.workload.key;
  const auto known = asked_.find(key);
  // The decisions to widen and to narrow it change nothing about it.
  const bool is_same = known != asked_.end() && known->second.setup == setup() &&
                       (known->second.decision == allocation.decision || allocation.is_widened());
  if (is_same) return known->second.is_soft;
  if (questions == 0) return std::nullopt;
  --questions;
  const std::optional<bool> soft = planner_.is_soft(allocation);
  if (soft) asked_[key] = {allocation.decision, setup(), *soft};
  return soft;
}

std::int64_t HomeRelief::setup() const {
  const auto& setup = deps_.committer.ledger().setup();
  return setup ? setup->number : 0;
}

}  // namespace topolet::engine
