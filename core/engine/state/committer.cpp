#include "core/engine/state/committer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/rfc3339.hpp"
#include "core/engine/state/codec.hpp"
#include "core/engine/state/transitions.hpp"
#include "core/engine/state/write_transition.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {
namespace {

bool is_trouble(const AuditEntry& audit) {
  if (audit.event == AuditEvent::kOverruled) return audit.reason_code != placement::reason_code::kOverruledEnded;
  return audit.event != AuditEvent::kStoreChecked && audit.event != AuditEvent::kQuarantineEnded &&
         audit.event != AuditEvent::kKubeletStatic && audit.event != AuditEvent::kCapacity;
}

/// "pod-stopped" as people write it.
std::string in_words(std::string cause) {
  std::replace(cause.begin(), cause.end(), '-', ' ');
  return cause;
}

bool changes_pending(const Change& change) {
  return change.before && change.before->phase == Phase::kPending &&
         !(change.after && desired_cpuset_of(*change.after) == desired_cpuset_of(*change.before));
}

}  // namespace

Committer::Committer(Deps deps, Ledger ledger)
    : deps_(std::move(deps)),
      ledger_(std::move(ledger)),
      durable_generation_(ledger_.generation()),
      writer_(deps_.writer_options, deps_.store, deps_.loop, deps_.clock, deps_.log,
              {.recovered =
                   [this](const Writer::Gap& gap) {
                     commit(event::AuditOnly{
                         AuditEvent::kGap,
                         fmt::format("the state database was not written in time for {} ms; changes acted on before "
                                     "they were written: {}",
                                     gap.duration.count(), gap.writes_late)});
                   },
               .rewrite = [this](const store::FileLoss& loss) { return rewrite(loss); },
               .reopened = [this](const Writer::Reopened& reopened) { on_reopened(reopened); },
               .written = [this](std::uint64_t number) { note_written(number); }}) {}

void Committer::commit(const Event& event, Urgency urgency, std::function<void()> then) {
  assert_on_thread(deps_.loop, "the ledger");
  auto computed = std::make_shared<Transition>(compute_transition(ledger_, deps_.rules, deps_.clock.wall(), event));
  if (computed->is_nothing()) {
    if (then) when_durable(urgency, std::move(then));
    return;
  }
  computed->committed_at = deps_.clock.steady();
  for (Change& change : computed->changes) {
    if (auto cost = memory_cost_of(change, ledger_.topology().get(), measure_memory_))
      change.audit->memory_cost = std::move(cost);
  }
  const std::shared_ptr<const Transition> next = std::move(computed);
  const std::int64_t first_decision = ledger_.next_decision();
  ledger_.apply(*next);
  if (std::any_of(next->changes.begin(), next->changes.end(), changes_pending)) ++changes_of_pending_;
  const std::uint64_t number = writer_.submit(
      next->generation, [next](store::Store& store) { return write(store, *next); },
      [this, next, then = std::move(then)] { publish(*next, then); }, urgency);
  unwritten_.push_back({number, first_decision, next});
  log(*next);
}

/// Runs `then` when everything before it is durable: the change that it follows from may still wait for the store.
void Committer::when_durable(Urgency urgency, std::function<void()> then) {
  if (writer_.idle()) return deps_.loop.post(std::move(then));
  writer_.submit(
      ledger_.generation(), [](store::Store&) { return Status(); }, std::move(then), urgency);
}

void Committer::when_durable(std::uint64_t generation, std::function<void()> then) {
  if (generation <= durable_generation_) return then();
  when_durable(std::move(then));
}

void Committer::publish(const Transition& transition, const std::function<void()>& then) {
  durable_generation_ = transition.generation;
  for (Observer* observer : observers_) observer->on_durable(transition);
  if (then) then();
}

void Committer::note_written(std::uint64_t number) {
  while (!unwritten_.empty() && unwritten_.front().number <= number) {
    const std::shared_ptr<const Transition> transition = unwritten_.front().transition;
    unwritten_.pop_front();
    for (Observer* observer : observers_) observer->on_written(*transition);
  }
}

Writer::Rewrite Committer::rewrite(const store::FileLoss& loss) {
  const auto now = deps_.clock.wall();
  const auto again =
      std::make_shared<const Transition>(record_again(ledger_, unwritten_, now, "recorded again: " + loss.what));
  return {{again->next_decision - 1, again->generation}, now, [again](store::Store& store) {
            return write_again(store, *again);
          }};
}

void Committer::on_reopened(const Writer::Reopened& reopened) {
  const std::string where = reopened.set_aside.empty()
                                ? ""
                                : fmt::format("; the file that was there is now '{}'", reopened.set_aside.string());
  const bool is_kept = reopened.loss.leftover == store::Leftover::kKept && reopened.set_aside.empty();
  const std::string what =
      is_kept ? fmt::format("the state database was opened again: {}", reopened.loss.what)
              : fmt::format(
                    "a new state database was begun: {}{}; what is held was recorded again, and what the audit "
                    "had before is not in it",
                    reopened.loss.what, where);
  reopened_because_ = fmt::format("{} {}: {}{}", is_kept ? "opened again" : "begun anew", rfc3339(deps_.clock.wall()),
                                  reopened.loss.what, where);
  commit(event::AuditOnly{AuditEvent::kGap, what});
}

void Committer::log(const Transition& transition) const {
  for (const Change& change : transition.changes) {
    if (!change.after && !change.cause.empty()) {
      deps_.log.info("{}: released CPUs {} ({})", display_name(change.before->workload),
                     change.before->placement.cpus.to_string(), in_words(change.cause));
    }
    if (change.after && change.audit) {
      deps_.log.info("{}: {} on CPUs {}: {}", display_name(change.after->workload),
                     to_string(change.after->placement.mode), change.after->placement.cpus.to_string(),
                     change.audit->reason);
    }
    if (change.after && change.after->is_kept() && change.outcome) {
      deps_.log.info("{}: {}: {}", display_name(change.after->workload),
                     change.after->phase == Phase::kCrashed ? "failed" : "has ended", change.outcome->message);
    }
  }
  for (const RecordedEvent& recorded : transition.recorded_events) {
    const std::string text =
        fmt::format("{}{}: {}", recorded.subject ? display_name(recorded.subject->workload) + ": " : "",
                    to_string(recorded.audit.event), recorded.audit.reason);
    if (is_trouble(recorded.audit)) {
      deps_.log.warn("{}", text);
    } else {
      deps_.log.info("{}", text);
    }
  }
}

}  // namespace topolet::engine
