#include "core/engine/converge/crowd_relief.hpp"

#include <algorithm>
#include <utility>

namespace topolet::engine {
namespace {

constexpr std::chrono::seconds kBetweenMoves{1};
/// Policies take their time, and the loop waits for them: where many are crowded and none can be helped, it goes on
/// with the others a second later.
constexpr std::size_t kMostTriedAtOnce = 8;

}  // namespace

CrowdRelief::CrowdRelief(Deps deps) : deps_(std::move(deps)), planner_(deps_.committer.ledger(), deps_.placer) {}

/// Not at once: what comes and goes together is there together by then. All seconds begin when the clock's do, so that
/// a daemon which starts again goes on as if it had not ended.
std::chrono::milliseconds CrowdRelief::delay() const {
  if (is_too_soon()) {
    return std::chrono::ceil<std::chrono::milliseconds>(*last_move_ + kBetweenMoves - deps_.clock.steady());
  }
  const std::chrono::milliseconds wall = deps_.clock.wall();
  return std::chrono::seconds(1) - (wall - std::chrono::floor<std::chrono::seconds>(wall));
}

void CrowdRelief::schedule() {
  if (std::exchange(scheduled_, true)) return;
  deps_.loop.after(delay(), [this] {
    scheduled_ = false;
    check();
  });
}

void CrowdRelief::retry() {
  for (const placement::ContainerKey& key : undecided_) asked_.erase(key);
  undecided_.clear();
  schedule();
}

void CrowdRelief::check() {
  if (is_too_soon()) return schedule();
  const Ledger& ledger = deps_.committer.ledger();
  Picture now{shared_load_of(ledger), ledger.pool(), ledger.setup() ? ledger.setup()->number : 0};
  std::vector<placement::ContainerKey> keys = planner_.crowded(now.load);
  if (keys.empty()) return;
  if (now != picture_) asked_.clear();
  picture_ = std::move(now);
  std::erase_if(keys, [this](const placement::ContainerKey& key) { return asked_.count(key) != 0; });
  if (keys.empty()) return;
  // For those who are not tried now, and in case that nothing comes of this.
  schedule();
  std::erase_if(keys, [&](const placement::ContainerKey& key) {
    const std::string& id = ledger.find(key)->container_id;
    return !deps_.mover.has_queue(id) || deps_.mover.is_busy(id);
  });
  if (keys.size() > kMostTriedAtOnce) keys.resize(kMostTriedAtOnce);
  std::reverse(keys.begin(), keys.end());
  try_one(std::move(keys));
}

/// The last first. Goes on with the others if that one stays.
void CrowdRelief::try_one(std::vector<placement::ContainerKey> keys) {
  if (keys.empty()) return;
  const placement::ContainerKey key = std::move(keys.back());
  keys.pop_back();
  asked_.insert(key);
  deps_.mover.move(key, ContainerQueues::Needs::kConverged,
                   [this, keys = std::move(keys)](const Allocation& before) -> std::optional<Plan> {
                     std::optional<Plan> found = plan(before);
                     if (!found) deps_.loop.post([this, keys] { try_one(keys); });
                     return found;
                   });
}

std::optional<Plan> CrowdRelief::plan(const Allocation& before) {
  if (is_too_soon()) {
    asked_.erase(before.workload.key);
    return std::nullopt;
  }
  CrowdPlanner::Relief relief = planner_.plan_relief(before);
  if (relief.plan) last_move_ = deps_.clock.steady();
  if (relief.lacks_votes) undecided_.insert(before.workload.key);
  return std::move(relief.plan);
}

bool CrowdRelief::is_too_soon() const { return last_move_ && deps_.clock.steady() - *last_move_ < kBetweenMoves; }

}  // namespace topolet::engine
