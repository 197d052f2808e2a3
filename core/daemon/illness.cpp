#include "core/daemon/illness.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/text.hpp"

namespace topolet::daemon {
namespace {

using engine::EngineSummary;
using std::chrono::milliseconds;

constexpr std::uint32_t kMostOfACode = 100;
/// A reason may list what each plugin says of each candidate.
constexpr std::size_t kLongestReason = 480;
/// The time after which a problem that repairs itself has ended.
constexpr std::chrono::seconds kOverlapMends{10};
constexpr std::chrono::minutes kWaitEnds{1};

using Illnesses = std::vector<Illness>;

std::string shortened(const std::string& text) {
  if (text.size() <= kLongestReason) return text;
  std::size_t end = kLongestReason;
  // Not within a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "…";
}

/// `lasts`: for so long it may be nothing.
Severity warning_after(milliseconds lasts, milliseconds harmless) {
  return lasts >= harmless ? Severity::kWarning : Severity::kNotice;
}

void add_service(const HealthFacts& facts, Illnesses& found) {
  if (!facts.runtime_connected)
    found.push_back(
        {illness::kRuntimeUnreachable, Severity::kCritical, "runtime " + facts.runtime,
         "the container runtime cannot be reached, so that no pod can start: does it run, and does daemon.runtime "
         "name its socket?"});
  if (facts.runtime_connected && !facts.runtime_answers)
    found.push_back({illness::kRuntimeUnreachable, Severity::kCritical, "runtime " + facts.runtime,
                     "the container runtime is connected but does not answer, so that no pod can start: does it stand "
                     "still (`systemctl status` and the log of its unit)?"});
  if (facts.engine == nullptr) {
    found.push_back(
        {illness::kEngineBusy, Severity::kCritical, "topoletd",
         "the engine does not answer, so that no pod can start: where that lasts, the log of topoletd says why"});
  } else if (!facts.engine->reconciled) {
    found.push_back({illness::kNotReconciled, Severity::kCritical, "topoletd",
                     "it has not been compared with the runtime yet, and no pod can start before that"});
  }
  // The error may quote a secret, and every reader of the watch socket gets this sentence.
  if (facts.reload_failed)
    found.push_back({illness::kConfigurationRejected, Severity::kWarning, "configuration",
                     "the last reload failed and has changed nothing: `systemctl status topoletd` says why"});
  if (!facts.restart_needed.empty())
    found.push_back({illness::kRestartNeeded, Severity::kNotice, "configuration",
                     fmt::format("changed, and applied by `topolet restart` only: {}",
                                 shortened(fmt::format("{}", fmt::join(facts.restart_needed, ", "))))});
  if (!facts.watch_error.empty())
    found.push_back({illness::kWatchUnavailable, Severity::kWarning, "watch socket",
                     "topolet-agent cannot connect: " + facts.watch_error});
}

void add_store(const HealthFacts& facts, Illnesses& found) {
  const std::string subject = "database " + facts.state_dir + "/state.db";
  if (facts.engine != nullptr && facts.engine->store_degraded) {
    const std::string& why = facts.engine->store_degraded_because;
    found.push_back({illness::kStoreDegraded, Severity::kWarning, subject,
                     "decisions are only in memory, " + (why.empty() ? "see the log" : "as it " + why)});
  }
  if (!facts.store_damage.empty())
    found.push_back({illness::kStoreDamaged, Severity::kWarning, subject,
                     "it is damaged: " + facts.store_damage + "; `topolet restart` begins a new one"});
  if (facts.engine != nullptr && !facts.engine->store_reopened_because.empty())
    found.push_back({illness::kStoreReopened, Severity::kNotice, subject, facts.engine->store_reopened_because});
}

void add_refused_files(const HealthFacts& facts, Illnesses& found) {
  if (facts.engine->files_refused_because.empty()) return;
  found.push_back({illness::kFilesRefused, Severity::kNotice, "runtime " + facts.runtime,
                   "it takes CPUs of containers, but not files of their cgroups, so that memory.high is set for nobody "
                   "until topoletd tries again, within an hour: " +
                       shortened(facts.engine->files_refused_because)});
}

void add_plugin(const PluginFacts& plugin, milliseconds now, Illnesses& found) {
  const std::string subject = "plugin " + plugin.name;
  const std::string effect =
      plugin.needed_by.empty() ? "" : fmt::format("; without its vote containers are denied ({})", plugin.needed_by);
  const plugin::PluginStatistics& seen = plugin.statistics;
  const auto add = [&](const char* code, Severity severity, const std::string& sentence) {
    found.push_back({code, severity, subject, sentence + effect});
  };
  // The severity of a plugin that is not asked.
  const Severity silent = plugin.needed_by.empty() ? Severity::kWarning : Severity::kCritical;
  if (!plugin.stuck.empty()) return add(illness::kPluginStuck, silent, plugin.stuck);
  if (seen.has_abandoned_call)
    return add(illness::kPluginStuck, silent, "a call that was given up has not returned: `topolet restart` ends it");
  if (!plugin.is_loaded)
    return add(illness::kPluginCrashed, silent, "it crashed when it was loaded, and is not loaded");
  if (!seen.quarantine.empty()) {
    if (!seen.trial_at)
      return add(illness::kPluginQuarantined, silent,
                 fmt::format("in quarantine until `topolet plugin reset {}`: {}", plugin.name, seen.quarantine));
    if (now >= *seen.trial_at)
      return add(illness::kPluginOnTrial, Severity::kNotice, "its next call is its trial: " + seen.quarantine);
    return add(illness::kPluginQuarantined, silent, "in quarantine until its trial: " + seen.quarantine);
  }
  if (seen.late_lately > 0)
    add(illness::kPluginLate, Severity::kWarning,
        fmt::format("late {} in ten minutes",
                    seen.late_lately == 1 ? "once" : fmt::format("{} times", seen.late_lately)));
  if (seen.failed_lately > 0)
    add(illness::kPluginFailing, Severity::kWarning,
        fmt::format("failed {} in ten minutes",
                    seen.failed_lately == 1 ? "once" : fmt::format("{} times", seen.failed_lately)));
}

void add_denials(const std::vector<RecentDenial>& denials, Illnesses& found) {
  for (const RecentDenial& denial : denials) {
    const std::string times = denial.times == 1 ? "" : fmt::format(" {} times", denial.times);
    const std::string code = denial.reason_code.empty() ? "" : " (" + denial.reason_code + ")";
    found.push_back({illness::kDenied, denial.is_over ? Severity::kNotice : Severity::kWarning, denial.container,
                     fmt::format("denied{}{}{}: {}", times, code, denial.is_over ? ", and placed or gone since" : "",
                                 shortened(denial.reason)),
                     denial.first});
  }
}

void add_other_hands(const EngineSummary& engine, milliseconds now, Illnesses& found) {
  for (const engine::OverruledContainer& one : engine.overruled) {
    const std::string where = one.seen_on.empty() ? "" : fmt::format("; it runs on {}", named("CPU", one.seen_on));
    found.push_back({illness::kOverruled, Severity::kWarning, one.container,
                     fmt::format("{} sets its CPUs, which should be {}{}: see `topolet audit --event overruled`",
                                 one.plugin.empty() ? "something else than topolet" : "NRI plugin " + one.plugin,
                                 one.cpus.to_string(), where),
                     now - one.lasts});
  }
  for (const engine::StuckContainer& one : engine.stuck) {
    found.push_back({illness::kStuck, Severity::kWarning, one.container,
                     fmt::format("it does not leave {}, which nobody else is given alone: {}", named("CPU", one.cpus),
                                 shortened(one.why)),
                     now - one.lasts});
  }
  for (const engine::Overlap& one : engine.overlaps) {
    found.push_back({illness::kOverlap, warning_after(one.seen_for, kOverlapMends), one.container,
                     fmt::format("it runs on {}, which {} has exclusively; its CPUs are being set again",
                                 named("CPU", one.cpus), one.owner),
                     now - one.seen_for});
  }
}

void add_containers(const EngineSummary& engine, milliseconds now, Illnesses& found) {
  for (const engine::SqueezedContainer& one : engine.squeezed_containers) {
    found.push_back(
        {one.left_to_kernel ? illness::kLeftToKernel : illness::kSqueezed, Severity::kWarning, one.container,
         one.left_to_kernel ? "none of its CPUs may be used any more, and it runs where the kernel lets it"
                            : fmt::format("CPUs are gone, and it has {} instead of what it should: `topolet explain` "
                                          "tells the way out",
                                          one.cpus.empty() ? "none" : named("CPU", one.cpus))});
  }
  for (const engine::WaitingContainer& one : engine.waiting) {
    const Severity severity = one.runs ? Severity::kNotice : warning_after(now - one.since, kWaitEnds);
    found.push_back({illness::kWaiting, severity, one.container,
                     fmt::format("it waits {} until {} has left {}", one.runs ? "elsewhere" : "with its start",
                                 one.waits_for, named("CPU", one.cpus)),
                     one.runs ? milliseconds(0) : one.since});
  }
  for (const engine::ContainerOnCpus& one : engine.drifted)
    found.push_back({illness::kDrifted, Severity::kNotice, one.container,
                     fmt::format("it was seen on {}, where it should not be; its CPUs are being set again",
                                 named("CPU", one.cpus))});
  for (const engine::ContainerOnCpus& one : engine.conflicts)
    found.push_back(
        {illness::kConflict, Severity::kWarning, one.container,
         fmt::format("the kubelet has given it {}, which others have too: switch its static CPU manager off",
                     named("CPU", one.cpus))});
  for (const engine::DoubtfulContainer& one : engine.in_doubt)
    found.push_back({illness::kInDoubt, warning_after(now - one.since, kWaitEnds), one.container,
                     "nobody can tell yet whether the runtime has created it", one.since});
}

void add_foreign(const EngineSummary& engine, Illnesses& found) {
  for (const auto& [handler, foreign] : engine.foreign) {
    found.push_back({illness::kForeign, Severity::kNotice, "runtime handler " + handler,
                     fmt::format("{} not placed, and {}", counted(foreign.containers, "container"),
                                 engine.confines_foreign ? "kept within the shared pool"
                                                         : "free to run on any CPU, also on exclusive ones"),
                     milliseconds(0)});
  }
  for (const auto& [pod, why] : engine.unconfined)
    found.push_back(
        {illness::kUnconfined, Severity::kWarning, pod, "it cannot be kept within the shared pool: " + why});
}

void add_quotas(const EngineSummary& engine, Illnesses& found) {
  for (const auto& [pod, why] : engine.kept_quotas)
    found.push_back({illness::kQuotaKept, Severity::kWarning, pod, "its CFS quota cannot be changed: " + why});
}

void add_capacities(const EngineSummary& engine, Illnesses& found) {
  for (const engine::NodeCapacity& one : engine.capacities) {
    if (!one.told.lowers) continue;
    found.push_back({illness::kCapacityLow, Severity::kNotice, fmt::format("node {}", one.told.node),
                     fmt::format("{} says that its CPUs can do {} of {} thousandths; fewer are promised",
                                 one.told.source, one.told.milli, one.nominal_milli),
                     one.told.below_since});
  }
}

/// Sorted by severity; of each code only the first ones.
Illnesses most_telling(Illnesses found) {
  std::stable_sort(found.begin(), found.end(),
                   [](const Illness& a, const Illness& b) { return a.severity > b.severity; });
  std::map<std::string, std::uint32_t> seen;
  Illnesses told;
  std::map<std::string, Illness> rest;
  for (Illness& one : found) {
    if (++seen[one.code] <= kMostOfACode) {
      told.push_back(std::move(one));
    } else {
      const auto [place, is_new] = rest.try_emplace(one.code, one);
      if (!is_new) ++place->second.count;
    }
  }
  for (auto& [code, one] : rest) {
    one.subject = fmt::format("{} more", one.count);
    one.sentence = "of the same";
    told.push_back(std::move(one));
  }
  return told;
}

}  // namespace

std::vector<Illness> find_illnesses(const HealthFacts& facts) {
  Illnesses found;
  add_service(facts, found);
  add_store(facts, found);
  for (const PluginFacts& plugin : facts.plugins) add_plugin(plugin, facts.now, found);
  if (facts.engine != nullptr) {
    add_other_hands(*facts.engine, facts.now, found);
    add_containers(*facts.engine, facts.now, found);
    add_foreign(*facts.engine, found);
    add_quotas(*facts.engine, found);
    add_capacities(*facts.engine, found);
    add_refused_files(facts, found);
  }
  add_denials(facts.denials, found);
  return most_telling(std::move(found));
}

}  // namespace topolet::daemon
