#include "core/engine/handlers/kubelet_static.hpp"

#include <fmt/format.h>

#include <string>

#include "core/base/log.hpp"
#include "core/placement/exclusive_claim.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::engine {

namespace reason_code = placement::reason_code;

KubeletStatic::KubeletStatic(Committer& committer, std::string_view last_told, Log& log)
    : committer_(committer), log_(log) {
  if (last_told == reason_code::kKubeletStaticOn) told_ = Told::kOn;
  if (last_told == reason_code::kKubeletStaticOff) told_ = Told::kOff;
}

void KubeletStatic::note(const placement::Workload& workload) {
  if (!workload.made_by_kubelet) return;
  if (!workload.kubelet_cpus.empty()) {
    if (told_ != Told::kOn) tell(Told::kOn, workload);
  } else if (workload.qos == placement::Qos::kGuaranteed && placement::whole_cpus(workload) > 0 &&
             (told_ == Told::kOn || committer_.ledger().kubelet_hands_out_cpusets())) {
    tell(Told::kOff, workload);
  }
}

void KubeletStatic::tell(Told what, const placement::Workload& workload) {
  told_ = what;
  const bool is_on = what == Told::kOn;
  const std::string reason =
      is_on ? fmt::format(
                  "the kubelet hands out CPUs (its CPU manager's policy is static): {} came with CPUs {}; "
                  "topolet gives none exclusively beside it",
                  display_name(workload), workload.kubelet_cpus.to_string())
            : fmt::format(
                  "the kubelet hands out no CPUs any more (its CPU manager's policy is not static): {} asks for "
                  "whole CPUs and came without any; topolet gives them from now on, and containers keep what the "
                  "kubelet has given them",
                  display_name(workload));
  log_.info("{}", reason);
  committer_.commit(event::KubeletStatic{is_on, reason});
}

}  // namespace topolet::engine
