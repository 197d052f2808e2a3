#include "core/engine/state/committer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/engine/state/codec.hpp"
#include "core/engine/state/transitions.hpp"

namespace topolet::engine {
namespace {

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
      writer_(deps_.writer_options, deps_.store, deps_.loop, deps_.clock, deps_.log, [this](const Writer::Gap& gap) {
        commit(event::AuditOnly{
            AuditEvent::kGap,
            fmt::format(
                "the state database was not written in time for {} ms; changes acted on before they were written: {}",
                gap.duration.count(), gap.writes_late)});
      }) {}

void Committer::commit(const Event& event, Urgency urgency, std::function<void()> then) {
  assert_on_thread(deps_.loop, "the ledger");
  auto next = std::make_shared<const Transition>(compute_transition(ledger_, deps_.rules, deps_.clock.wall(), event));
  if (next->is_nothing()) {
    if (then) when_durable(urgency, std::move(then));
    return;
  }
  ledger_.apply(*next);
  if (std::any_of(next->changes.begin(), next->changes.end(), changes_pending)) ++changes_of_pending_;
  writer_.submit(
      next->generation, [next](store::Store& store) { return write(store, *next); },
      [this, next, then = std::move(then)] { publish(*next, then); }, urgency);
  log(*next);
}

/// What it follows from may still wait for the store.
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
    if (change.outcome && change.outcome->state == "crashed") {
      deps_.log.info("{}: failed: {}", display_name(change.after->workload), change.outcome->message);
    }
  }
  for (const RecordedEvent& recorded : transition.recorded_events) {
    deps_.log.warn("{}{}: {}", recorded.subject ? display_name(recorded.subject->workload) + ": " : "",
                   to_string(recorded.audit.event), recorded.audit.reason);
  }
}

}  // namespace topolet::engine
