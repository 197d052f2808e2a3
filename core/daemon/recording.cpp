// Where plugins are asked and told, and what of that is recorded.
#include <utility>

#include "core/base/log.hpp"
#include "core/daemon/daemon.hpp"

namespace topolet::daemon {

/// Containers are placed also where nothing can be recorded.
void Daemon::open_record(const config::DaemonOptions& options) {
  if (options.record.empty()) return;
  auto recorder = replay::Recorder::open(
      {.file = options.record, .max_bytes = options.record_bytes, .version = TOPOLET_VERSION}, first_topology_, log_);
  if (!recorder) {
    log_->warn("nothing is recorded (daemon.record): {}", recorder.error().message);
    return;
  }
  recorder_ = *std::move(recorder);
  operations_ = std::make_unique<replay::OperationRecorder>(recorder_);
  log_->info("decisions and what they are made of are recorded in {}", options.record.string());
}

placement::Decision Daemon::decide(const std::shared_ptr<const placement::PolicyRequest>& request,
                                   const placement::PlacementRules& rules) {
  // By value, because an abandoned call outlives this one.
  replay::NotedDecision made = plugins_->decide<replay::NotedDecision>(
      [request, rules, reads_load = plugins_->reads_load(), notes = replay::notes_for(recorder_.get())](
          const placement::Votes& votes, std::int64_t setup) {
        replay::NotedDecision noted = replay::decide(*request, rules, votes, notes);
        noted.decision.setup = setup;
        if (reads_load) noted.decision.load = request->load;
        for (const placement::Vote& vote : votes)
          noted.decision.times.policies[vote.policy->name()] = vote.policy->time_spent();
        return noted;
      },
      request->plan_began);
  for (const placement::Decision::InvalidReply& bad : made.decision.invalid_replies)
    plugins_->report_invalid_reply(bad.policy, bad.what);
  if (recorder_) recorder_->add_decision(request, rules, made);
  return std::move(made.decision);
}

void Daemon::publish(std::shared_ptr<const plugin::ContainerEvent> container_event) {
  plugins_->publish(container_event);
  if (recorder_) recorder_->add_event(std::move(container_event));
}

std::vector<plugin::MoveRequest> Daemon::tick(const replay::Recorder::MakeView& view) {
  std::vector<std::string> woken;
  const auto tick_plugins = [&](const replay::Recorder::MakeView& seen) { return plugins_->tick(seen, &woken); };
  return recorder_ ? recorder_->run_tick(view, tick_plugins, &woken) : tick_plugins(view);
}

}  // namespace topolet::daemon
