#include "core/engine/state/committer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/engine/state/codec.hpp"
#include "core/engine/state/transitions.hpp"

namespace topolet::engine {
namespace {

std::string name_of(const Workload& workload) {
  return fmt::format("{}/{}/{}", workload.pod_namespace, workload.pod_name, workload.key.name);
}

/// "pod-stopped" as people write it.
std::string in_words(std::string cause) {
  std::replace(cause.begin(), cause.end(), '-', ' ');
  return cause;
}

}  // namespace

Committer::Committer(Deps deps, Ledger ledger)
    : deps_(std::move(deps)),
      ledger_(std::move(ledger)),
      writer_(deps_.writing, deps_.store, deps_.loop, deps_.clock, deps_.log, [this](const Writer::Gap& gap) {
        commit(event::Noted{
            "gap", fmt::format("the state database did not keep up for {} ms; {} changes were acted on before they "
                               "were written",
                               gap.lasted.count(), gap.late)});
      }) {}

void Committer::commit(const Event& event, std::function<void()> then) {
  assert_on(deps_.loop, "the ledger");
  auto next = std::make_shared<const Transition>(transition(ledger_, deps_.rules, deps_.clock.wall(), event));
  if (next->is_nothing()) {
    if (then) after_all(std::move(then));
    return;
  }
  ledger_.apply(*next);
  log(*next);
  writer_.submit(
      next->generation, [next](Store& store) { return write(store, *next); },
      [this, next, then = std::move(then)] { tell(*next, then); });
}

/// What it follows from may still wait for the store.
void Committer::after_all(std::function<void()> then) {
  if (writer_.idle()) return deps_.loop.post(std::move(then));
  writer_.submit(
      ledger_.generation(), [](Store&) { return Status(); }, std::move(then));
}

void Committer::tell(const Transition& transition, const std::function<void()>& then) {
  for (Observer* observer : observers_) observer->committed(transition);
  if (then) then();
}

void Committer::log(const Transition& transition) const {
  for (const Change& change : transition.changes) {
    if (!change.after && !change.cause.empty()) {
      deps_.log.info("{}: released CPUs {} ({})", name_of(change.before->workload),
                     change.before->placement.cpus.to_string(), in_words(change.cause));
    }
    if (change.after && change.audit) {
      deps_.log.info("{}: {} on CPUs {}: {}", name_of(change.after->workload), to_string(change.after->placement.mode),
                     change.after->placement.cpus.to_string(), change.audit->reason);
    }
    if (change.outcome && change.outcome->state == "crashed") {
      deps_.log.info("{}: failed: {}", name_of(change.after->workload), change.outcome->message);
    }
  }
  for (const Remark& remark : transition.remarks) {
    deps_.log.warn("{}{}: {}", remark.about ? name_of(remark.about->workload) + ": " : "", remark.audit.event,
                   remark.audit.reason);
  }
}

}  // namespace topolet::engine
