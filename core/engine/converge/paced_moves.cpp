#include "core/engine/converge/paced_moves.hpp"

#include <algorithm>
#include <utility>

namespace topolet::engine {
namespace {

constexpr std::chrono::milliseconds kNow{0};
constexpr std::chrono::milliseconds kBetweenMoves{1000};
/// Policies take their time, and the loop waits for them: where many could move and for none there is a better place,
/// it goes on with the others a second later.
constexpr std::size_t kMostTriedAtOnce = 8;

/// Returns true if one that is moved for this reason was moved by PacedMoves.
bool is_paced(MoveCause cause) { return cause == MoveCause::kHeal || cause == MoveCause::kCrowd; }

}  // namespace

PacedMoves::PacedMoves(Deps deps, std::vector<Reason> reasons) : deps_(std::move(deps)), reasons_(std::move(reasons)) {}

/// Returns how long it is too soon for another move. The ledger knows when the last one was, so that a daemon which
/// starts again goes on as if it had not ended.
std::optional<std::chrono::milliseconds> PacedMoves::until_next_move() const {
  const std::chrono::milliseconds now = deps_.clock.wall();
  std::optional<std::chrono::milliseconds> left;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (!allocation.last_move || !is_paced(allocation.last_move->cause)) continue;
    const std::chrono::milliseconds since = now - allocation.last_move->at;
    // The clock may have been set back.
    if (since < kBetweenMoves && since > -kBetweenMoves) left = std::max(left.value_or(kNow), kBetweenMoves - since);
  }
  return left;
}

/// Not at once: what comes and goes together is there together by then. All seconds begin when the clock's do, so that
/// a daemon which starts again goes on as if it had not ended.
std::chrono::milliseconds PacedMoves::delay() const {
  if (const auto left = until_next_move()) return *left;
  const std::chrono::milliseconds wall = deps_.clock.wall();
  return std::chrono::seconds(1) - (wall - std::chrono::floor<std::chrono::seconds>(wall));
}

void PacedMoves::schedule() {
  if (std::exchange(scheduled_, true)) return;
  deps_.loop.after(delay(), [this] {
    scheduled_ = false;
    check();
  });
}

void PacedMoves::retry() {
  for (const Question& question : undecided_) asked_.erase(question);
  undecided_.clear();
  schedule();
}

void PacedMoves::begin() { end_rest(); }

/// In the order in which they are to be asked, without those that were asked in vain.
std::vector<PacedMoves::Question> PacedMoves::open_questions() const {
  const Ledger& ledger = deps_.committer.ledger();
  const std::chrono::milliseconds now = deps_.clock.wall();
  std::vector<Question> questions;
  for (std::size_t i = 0; i < reasons_.size(); ++i) {
    for (placement::ContainerKey& key : reasons_[i].movable()) {
      if (!was_just_moved(*ledger.find(key), now)) questions.emplace_back(i, std::move(key));
    }
  }
  return questions;
}

void PacedMoves::check() {
  if (until_next_move()) return schedule();
  wait_for_rest();
  const Ledger& ledger = deps_.committer.ledger();
  std::vector<Question> questions = open_questions();
  if (questions.empty()) return;
  Picture now{shared_load_of(ledger), ledger.pool(), ledger.free_isolated(),
              ledger.setup() ? ledger.setup()->number : 0};
  if (now != picture_) asked_.clear();
  picture_ = std::move(now);
  std::erase_if(questions, [this](const Question& question) { return asked_.count(question) != 0; });
  if (questions.empty()) return;
  // For those who are not tried now, and in case that nothing comes of this.
  schedule();
  std::erase_if(questions, [&](const Question& question) {
    const std::string& id = ledger.find(question.second)->container_id;
    return !deps_.mover.has_queue(id) || deps_.mover.is_busy(id);
  });
  if (questions.size() > kMostTriedAtOnce) questions.resize(kMostTriedAtOnce);
  std::reverse(questions.begin(), questions.end());
  try_one(std::move(questions));
}

/// The last first. Goes on with the others if that one stays.
void PacedMoves::try_one(std::vector<Question> questions) {
  if (questions.empty()) return;
  const Question question = std::move(questions.back());
  questions.pop_back();
  asked_.insert(question);
  deps_.mover.move(question.second, ContainerQueues::Needs::kConverged,
                   [this, question, questions = std::move(questions)](const Allocation& before) {
                     std::optional<Plan> found = plan(question, before);
                     if (!found) deps_.loop.post([this, questions] { try_one(questions); });
                     return found;
                   });
}

std::optional<Plan> PacedMoves::plan(const Question& question, const Allocation& before) {
  if (until_next_move() || was_just_moved(before, deps_.clock.wall())) {
    asked_.erase(question);
    return std::nullopt;
  }
  BetterPlace found = reasons_[question.first].plan(before);
  if (found.lacks_votes) undecided_.insert(question);
  // A move that is withdrawn leaves all as it was, and is tried again when the time has come.
  if (found.plan) asked_.erase(question);
  return std::move(found.plan);
}

/// Has all looked at again when the first of those that were moved is not left alone any more.
void PacedMoves::wait_for_rest() {
  const std::chrono::milliseconds now = deps_.clock.wall();
  std::optional<std::chrono::milliseconds> first;
  for (const auto& [key, allocation] : deps_.committer.ledger().allocations()) {
    if (!was_just_moved(allocation, now)) continue;
    const std::chrono::milliseconds end = allocation.last_move->at + kBetweenMovesOfOne;
    first = std::min(first.value_or(end), end);
  }
  if (!first || (rest_ends_ && *rest_ends_ <= *first)) return;
  rest_ends_ = first;
  deps_.loop.after(*first - now, [this] { end_rest(); });
}

void PacedMoves::end_rest() {
  rest_ends_.reset();
  deps_.committer.commit(event::RestEnded{});
  schedule();
}

}  // namespace topolet::engine
