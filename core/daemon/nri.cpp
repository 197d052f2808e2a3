// The daemon's part that speaks NRI with the runtime: as the front end, or as a guard that hears who else sets CPUs.
#include <utility>

#include "core/base/log.hpp"
#include "core/daemon/daemon.hpp"

namespace topolet::daemon {

nri::Validator::Judge Daemon::nri_judge() const {
  return [engine = engine_.get(), refuses = refuses_foreign_cpusets_](operations::ForeignCpuset found,
                                                                      operations::OnForeignCpusetJudged judged) {
    engine->judge_foreign_cpuset(std::move(found), refuses, std::move(judged));
  };
}

void Daemon::open_nri(const config::NriOptions& options, const operations::DemandRules& demand_rules) {
  refuses_foreign_cpusets_ = options.guard == config::NriGuard::kDeny;
  std::optional<std::string> when_late;
  if (refuses_foreign_cpusets_)
    when_late = "topolet: topoletd is too busy to judge what another NRI plugin sets (nri.guard = deny); try again";
  std::optional<nri::ReleasedSession> released = deps_.sockets ? std::move(deps_.sockets->nri) : std::nullopt;
  if (is_nri_front()) {
    nri_front_ = std::make_unique<nri::Front>(
        options.socket,
        nri::Front::Deps{*engine_, demand_rules, *own_updates_, nri_judge(), std::move(when_late), *log_,
                         [now = settable_](const nri::RuntimeFacts& runtime) { now->note(runtime); }},
        std::move(released));
    return;
  }
  if (options.guard == config::NriGuard::kOff || options.socket.empty()) return;
  nri_guard_ =
      std::make_unique<nri::Guard>(options.socket, nri_judge(), std::move(when_late), *log_, std::move(released));
}

/// The runtime tells this plugin of containers before anybody can have it create one.
void Daemon::adopt_nri_plugin(UniqueFd connection, Successor& bringer) {
  if (!nri_front_) {
    log_->error(
        "the runtime starts the NRI plugin 50-topolet, which is for daemon.front = nri: remove it from the "
        "runtime's directory of plugins");
    return bringer.refuse("daemon.front is cri");
  }
  nri_front_->adopt(std::move(connection));
  bringer.let_go();
}

std::optional<NriFacts> Daemon::nri_facts() const {
  if (nri_front_) return NriFacts{refuses_foreign_cpusets_, nri_front_->state(), true, nri_front_->plugins()};
  if (nri_guard_) return NriFacts{refuses_foreign_cpusets_, nri_guard_->state()};
  return std::nullopt;
}

}  // namespace topolet::daemon
