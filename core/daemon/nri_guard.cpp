// The daemon's part that hears over the runtime's NRI who else sets CPUs.
#include <utility>

#include "core/daemon/daemon.hpp"

namespace topolet::daemon {

void Daemon::open_nri_guard(const config::NriOptions& options) {
  if (options.guard == config::NriGuard::kOff || options.socket.empty()) return;
  refuses_foreign_cpusets_ = options.guard == config::NriGuard::kDeny;
  std::optional<std::string> when_late;
  if (refuses_foreign_cpusets_)
    when_late = "topolet: topoletd is too busy to judge what another NRI plugin sets (nri.guard = deny); try again";
  nri_guard_ = std::make_unique<nri::Guard>(
      options.socket,
      [engine = engine_.get(), refuses = refuses_foreign_cpusets_](operations::ForeignCpuset found,
                                                                   operations::OnForeignCpusetJudged judged) {
        engine->judge_foreign_cpuset(std::move(found), refuses, std::move(judged));
      },
      std::move(when_late), *log_);
}

std::optional<NriFacts> Daemon::nri_facts() const {
  if (!nri_guard_) return std::nullopt;
  return NriFacts{refuses_foreign_cpusets_, nri_guard_->state()};
}

}  // namespace topolet::daemon
