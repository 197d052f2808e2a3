#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/clock.hpp"
#include "core/base/escape.hpp"
#include "core/base/illness.hpp"
#include "core/base/index_set.hpp"
#include "core/base/text.hpp"
#include "core/cli/capacity.hpp"
#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/illness.hpp"
#include "core/cli/measured.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"
#include "core/cli/table.hpp"

namespace topolet::cli {
namespace {

using control::v1::StatusResponse;

std::string or_none(const std::string& cpus) { return cpus.empty() ? "none" : cpus; }

std::string containers(const StatusResponse& status) {
  std::string text;
  for (const char* mode : {"exclusive", "overruled", "drifted", "overlapped", "shared", "reserved", "foreign"}) {
    const auto count = status.containers().find(mode);
    if (count == status.containers().end()) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count->second, mode);
  }
  return text.empty() ? "none" : text;
}

std::string released_line(const StatusResponse& status) {
  if (status.released().empty()) return {};
  return fmt::format("released     {}, until topoletd starts again (`topolet restart`)\n",
                     status.released() == "cpusets" ? "everybody has all CPUs, and nobody is placed"
                                                    : "BestEffort containers give way to nobody");
}

/// A line and what to do about it; empty if all have the CPUs they should have.
std::string squeezed(const StatusResponse& status) {
  if (status.squeezed() == 0) return {};
  std::string text =
      fmt::format("squeezed     {}: CPUs are offline or must not be used, and no place as it should be is free\n",
                  counted(status.squeezed(), "container"));
  text += names_with(status, illness::kSqueezed);
  if (status.left_to_kernel() > 0) {
    text += fmt::format("             {} of them without any CPU left: the kernel runs them on the CPUs of others\n",
                        status.left_to_kernel());
    text += names_with(status, illness::kLeftToKernel);
  }
  return text + "             `topolet ps` marks them, `topolet explain CONTAINER` tells the way out\n";
}

/// Formats it as "3 s" or, as most overlaps are repaired before a second has passed, as "40 ms".
std::string duration_of(const control::v1::Overlap& overlap) {
  const std::int64_t ms = overlap.seen_for_ms();
  return ms < 1000 ? fmt::format("{} ms", ms) : duration_text(ms / 1000);
}

std::string describe_overlap(const control::v1::Overlap& overlap) {
  const Result<CpuSet> cpus = CpuSet::parse(overlap.cpus());
  return fmt::format("{} has been running for {} on {}, which {} has exclusively; its CPUs are being set again",
                     overlap.container(), duration_of(overlap), cpus ? named("CPU", *cpus) : "CPUs " + overlap.cpus(),
                     overlap.owner());
}

/// Writes a line for each, and what to do about it; nothing if no container runs on the CPUs of another.
std::string overlaps(const StatusResponse& status) {
  constexpr int kMostShown = 10;
  if (status.overlapping_containers() == 0) return {};
  std::string text;
  const int shown = std::min(status.overlaps_size(), kMostShown);
  for (int i = 0; i < shown; ++i)
    text += fmt::format("{:12} {}\n", i == 0 ? "overlap" : "", escaped(describe_overlap(status.overlaps(i))));
  if (status.overlaps_size() > shown)
    text += fmt::format("             and more: {} in all\n", counted(status.overlapping_containers(), "container"));
  return text + "             `topolet audit --event overlap` lists when each began and ended\n";
}

/// A line for each runtime handler whose containers are not placed.
std::string foreign_handlers(const StatusResponse& status) {
  std::string text;
  for (const control::v1::ForeignHandler& foreign : status.foreign_handlers()) {
    text += fmt::format(
        "{:12} {} of runtime handler {} {} not placed, and {}{}\n", text.empty() ? "foreign" : "",
        counted(foreign.containers(), "container"), escaped(foreign.handler()),
        foreign.containers() == 1 ? "is" : "are",
        status.confines_foreign() ? "kept within the shared pool" : "may run on any CPU, also on exclusive ones",
        foreign.obstacle().empty() ? "" : " (" + escaped(foreign.obstacle()) + ")");
  }
  for (const auto& [pod, why] : std::map(status.unconfined_pods().begin(), status.unconfined_pods().end()))
    text += fmt::format("             pod {} cannot be kept within the pool: {}\n", escaped(pod), escaped(why));
  return text;
}

std::string describe_overruled(const control::v1::Overruled& overruled) {
  const auto in_words = [](const std::string& list) {
    const Result<CpuSet> cpus = CpuSet::parse(list);
    return cpus ? named("CPU", *cpus) : "CPUs " + list;
  };
  const std::string now =
      overruled.seen_on().empty()
          ? fmt::format("at the moment it is on {}, where it should be", in_words(overruled.cpus()))
          : fmt::format("it runs on {} instead of {}", in_words(overruled.seen_on()), overruled.cpus());
  return fmt::format("for {} {} has set the CPUs of {}; {}", duration_text(overruled.lasts_ms() / 1000),
                     overruled.plugin().empty() ? "something else" : "NRI plugin " + overruled.plugin(),
                     overruled.container(), now);
}

/// Writes a line for each, and what to do about it; nothing if topolet's word counts everywhere.
std::string overruled(const StatusResponse& status) {
  constexpr int kMostShown = 10;
  if (status.overruled_containers() == 0) return {};
  std::string text;
  const int shown = std::min(status.overruled_size(), kMostShown);
  for (int i = 0; i < shown; ++i)
    text += fmt::format("{:12} {}\n", i == 0 ? "overruled" : "", escaped(describe_overruled(status.overruled(i))));
  if (status.overruled_size() > shown)
    text += fmt::format("             and more: {} in all\n", counted(status.overruled_containers(), "container"));
  return text + "             an NRI plugin or another agent does that: see `topolet audit --event overruled`\n";
}

/// Lists the containers that do not leave CPUs.
std::string stuck(const StatusResponse& status) {
  constexpr int kMostShown = 10;
  if (status.stuck_containers() == 0) return {};
  std::string text;
  const int shown = std::min(status.stuck_size(), kMostShown);
  for (int i = 0; i < shown; ++i) {
    const control::v1::Stuck& one = status.stuck(i);
    text +=
        fmt::format("{:12} {}\n", i == 0 ? "stuck" : "",
                    escaped(fmt::format("for {} {} has not left CPUs {}, which nobody else is given alone: {}",
                                        duration_text(one.lasts_ms() / 1000), one.container(), one.cpus(), one.why())));
  }
  if (status.stuck_size() > shown)
    text += fmt::format("             and more: {} in all\n", counted(status.stuck_containers(), "container"));
  return text + "             each is tried again within ten minutes: see `topolet audit --event stuck`\n";
}

/// A line for each node that something is told of.
std::string capacities(const StatusResponse& status) {
  std::string text;
  for (const control::v1::Capacity& capacity : status.capacities()) {
    text += fmt::format("{:12} node {}: {}\n", text.empty() ? "capacity" : "", capacity.node(),
                        escaped(describe(capacity)));
  }
  return text;
}

/// Whether the load is measured, and what it says of the capacity.
std::string load_line(const StatusResponse& status) {
  if (!status.has_load()) return {};
  const control::v1::LoadState& load = status.load();
  if (!load.is_measuring()) {
    const char* why = load.sampling() == "off" ? "daemon.load = off" : "nobody reads it";
    return fmt::format("{:12} not measured: {}\n", "load", why);
  }
  std::string text = fmt::format("{:12} measured for {}, {} s ago; capacity by {}\n", "load",
                                 duration_text(load.measured_for_ms() / 1000), load.age_ms() / 1000,
                                 load.capacity_source() == "steal"           ? "the time that a hypervisor takes"
                                 : load.capacity_source() == "no-hypervisor" ? "number of CPUs: there is no hypervisor"
                                                                             : "number of CPUs: no steal is reported");
  std::istringstream notes(load_notes(load));
  for (std::string note; std::getline(notes, note);) text += fmt::format("{:12} {}\n", "", escaped(note));
  return text;
}

std::string database(const StatusResponse& status) {
  std::string text = "healthy";
  if (status.store_degraded()) {
    const std::string& why = status.store_degraded_because();
    text = "DEGRADED: decisions are not written, " + (why.empty() ? "see the log" : "as the database " + why);
  } else if (!status.store_damage().empty()) {
    text = "DAMAGED: " + status.store_damage() + "; it is set aside when topoletd is started next";
  }
  if (!status.store_reopened_because().empty()) text += "; " + status.store_reopened_because();
  return text;
}

/// Says how it is with the way by which containers come to topolet.
std::string nri_front(const control::v1::NriGuard& front) {
  if (!front.is_registered()) {
    return fmt::format(
        "NRI          front, NOT connected: {}; the runtime creates containers without topolet, or none if it requires "
        "the plugin topolet\n",
        front.why_not().empty() ? "topoletd is connecting" : escaped(front.why_not()));
  }
  std::string text =
      fmt::format("NRI          front: {} with NRI {}", escaped(front.runtime()),
                  front.nri_version().empty() ? "of a version that it does not tell" : escaped(front.nri_version()));
  if (!front.is_asked()) text += "; it validates nothing, so that it creates a container for which topolet was late";
  if (front.plugins_size() > 0) {
    const std::vector<std::string> plugins(front.plugins().begin(), front.plugins().end());
    text += fmt::format("; it asks the plugins {}", escaped(fmt::format("{}", fmt::join(plugins, ", "))));
  }
  return text + "\n";
}

/// Says by which way topolet learns that a plugin of the runtime sets CPUs.
std::string nri_guard(const StatusResponse& status) {
  if (!status.has_nri_guard()) return {};
  const control::v1::NriGuard& guard = status.nri_guard();
  if (guard.is_front()) return nri_front(guard);
  const char* const in_kernel = "CPUs that others set are found in the kernel, without a name";
  const std::string rule = guard.refuses() ? "guard deny" : "guard warn";
  if (!guard.is_registered()) {
    return fmt::format("NRI          {}, not connected: {}; {}\n", rule,
                       guard.why_not().empty() ? "topoletd is connecting" : escaped(guard.why_not()), in_kernel);
  }
  const std::string runtime =
      fmt::format("{} with NRI {}", escaped(guard.runtime()),
                  guard.nri_version().empty() ? "of a version that it does not tell" : escaped(guard.nri_version()));
  if (!guard.is_asked())
    return fmt::format("NRI          {}: {} asks no plugin about others; {}\n", rule, runtime, in_kernel);
  return fmt::format("NRI          {}: {} tells which plugin sets CPUs, before a container is created\n", rule,
                     runtime);
}

nlohmann::ordered_json nri_guard_json(const StatusResponse& status) {
  if (!status.has_nri_guard()) return nullptr;
  const control::v1::NriGuard& guard = status.nri_guard();
  return {{"refuses", guard.refuses()},
          {"registered", guard.is_registered()},
          {"why_not", guard.why_not()},
          {"asked", guard.is_asked()},
          {"runtime", guard.runtime()},
          {"nri_version", guard.nri_version()},
          {"front", guard.is_front()},
          {"plugins", std::vector<std::string>(guard.plugins().begin(), guard.plugins().end())}};
}

std::string format_text(const StatusResponse& status) {
  return fmt::format(
      "topoletd     {}, process {}, up {}\n"
      "{}"
      "{}"
      "runtime      {}, {}\n"
      "{}"
      "{}"
      "database     {}/state.db, {}\n"
      "containers   {}{}\n"
      "{}"
      "{}"
      "{}"
      "{}"
      "{}"
      "{}"
      "CPUs         {} allowed; pool {}; reserved {}; exclusive {}; withheld {}\n"
      "{}"
      "{}"
      "{}"
      "generation   {}\n",
      escaped(status.version()), status.process(), duration_text(status.uptime_s()), health_line(status),
      status.listen().empty() ? std::string() : fmt::format("listens on   {}\n", escaped(status.listen())),
      escaped(status.runtime()), status.runtime_connected() ? "connected" : "NOT connected",
      sentences_of(status, illness::kRuntimeUnreachable), nri_guard(status), escaped(status.state_dir()),
      escaped(database(status)), escaped(containers(status)),
      status.reconciled() ? "" : " (not yet compared with the runtime)", overruled(status), stuck(status),
      overlaps(status), foreign_handlers(status), squeezed(status), illness_lines(status, Clock().wall().count()),
      or_none(status.allowed_cpus()), or_none(status.pool_cpus()), or_none(status.reserved_cpus()),
      or_none(status.exclusive_cpus()), or_none(status.withheld_cpus()), capacities(status), load_line(status),
      released_line(status), status.generation());
}

nlohmann::ordered_json load_json(const StatusResponse& status) {
  if (!status.has_load()) return nullptr;
  const control::v1::LoadState& load = status.load();
  return {{"sampling", load.sampling()},
          {"is_measuring", load.is_measuring()},
          {"measured_for_ms", load.measured_for_ms()},
          {"age_ms", load.age_ms()},
          {"error", load.error()},
          {"capacity_source", load.capacity_source()}};
}

nlohmann::ordered_json overlaps_json(const StatusResponse& status) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const control::v1::Overlap& overlap : status.overlaps()) {
    all.push_back({{"container", overlap.container()},
                   {"owner", overlap.owner()},
                   {"cpus", overlap.cpus()},
                   {"seen_for_ms", overlap.seen_for_ms()}});
  }
  return all;
}

nlohmann::ordered_json foreign_json(const StatusResponse& status) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const control::v1::ForeignHandler& foreign : status.foreign_handlers()) {
    all.push_back(
        {{"handler", foreign.handler()}, {"containers", foreign.containers()}, {"obstacle", foreign.obstacle()}});
  }
  return all;
}

nlohmann::ordered_json overruled_json(const StatusResponse& status) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const control::v1::Overruled& overruled : status.overruled()) {
    all.push_back({{"container", overruled.container()},
                   {"cpus", overruled.cpus()},
                   {"seen_on", overruled.seen_on()},
                   {"plugin", overruled.plugin()},
                   {"lasts_ms", overruled.lasts_ms()}});
  }
  return all;
}

nlohmann::ordered_json stuck_json(const StatusResponse& status) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const control::v1::Stuck& stuck : status.stuck()) {
    all.push_back({{"container", stuck.container()},
                   {"cpus", stuck.cpus()},
                   {"why", stuck.why()},
                   {"lasts_ms", stuck.lasts_ms()}});
  }
  return all;
}

nlohmann::ordered_json format_json(const StatusResponse& status) {
  nlohmann::ordered_json modes = nlohmann::ordered_json::object();
  for (const auto& [mode, count] : status.containers()) modes[mode] = count;
  return {{"version", status.version()},
          {"process", status.process()},
          {"uptime_s", status.uptime_s()},
          {"listen", status.listen()},
          {"runtime", status.runtime()},
          {"runtime_connected", status.runtime_connected()},
          {"reconciled", status.reconciled()},
          {"needs_somebody", needs_somebody(status)},
          {"illnesses", illnesses_json(status)},
          {"released", status.released()},
          {"state_dir", status.state_dir()},
          {"store_degraded", status.store_degraded()},
          {"store_degraded_because", status.store_degraded_because()},
          {"store_reopened_because", status.store_reopened_because()},
          {"store_damage", status.store_damage()},
          {"containers", modes},
          {"overlapping_containers", status.overlapping_containers()},
          {"overlaps", overlaps_json(status)},
          {"foreign_handlers", foreign_json(status)},
          {"confines_foreign", status.confines_foreign()},
          {"unconfined_pods", std::map(status.unconfined_pods().begin(), status.unconfined_pods().end())},
          {"overruled_containers", status.overruled_containers()},
          {"overruled", overruled_json(status)},
          {"nri_guard", nri_guard_json(status)},
          {"stuck_containers", status.stuck_containers()},
          {"stuck", stuck_json(status)},
          {"squeezed", status.squeezed()},
          {"left_to_kernel", status.left_to_kernel()},
          {"generation", status.generation()},
          {"allowed_cpus", status.allowed_cpus()},
          {"pool_cpus", status.pool_cpus()},
          {"reserved_cpus", status.reserved_cpus()},
          {"exclusive_cpus", status.exclusive_cpus()},
          {"withheld_cpus", status.withheld_cpus()},
          {"capacities", capacities_json(status)},
          {"load", load_json(status)}};
}

}  // namespace

namespace {

Result<StatusResponse> ask_how_it_is(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  return daemon->call(&control::v1::Control::Stub::Status, control::v1::StatusRequest());
}

/// An answer there must be; and one that does not tell what is ill is none.
Status check(const Result<StatusResponse>& status) {
  if (!status) {
    const bool is_mistake = status.error().code == Code::kInvalidArgument;
    return Error{is_mistake ? Code::kInvalidArgument : Code::kUnavailable, status.error().message};
  }
  if (!status->has_illnesses()) {
    return Error{Code::kUnavailable,
                 fmt::format("topoletd {} does not tell yet what needs somebody: `topolet restart` replaces it by the "
                             "one that is installed",
                             status->version())};
  }
  if (needs_somebody(*status)) return Error{Code::kFailedPrecondition, {}};
  return {};
}

}  // namespace

void declare_status(Options& options) {
  declare_location(options);
  declare_json(options);
  options.add_options()(
      "check",
      "Exit with 1 if anything needs somebody: what is critical (no pod can start) or a warning. With "
      "0 if there are at most notices: what topolet mends itself, or somebody has set so. With 3 if "
      "topoletd does not answer, or is too old to tell.");
}

Status show_status(const Invocation& invocation) {
  const Result<StatusResponse> status = ask_how_it_is(invocation);
  if (status) fmt::print("{}", invocation.has("json") ? to_text(format_json(*status)) : format_text(*status));
  if (invocation.has("check")) return check(status);
  return status ? Status() : Status(status.error());
}

void declare_reload(Options& options) {
  declare_location(options);
  declare_json(options);
}

Status reload(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto done = daemon->call(&control::v1::Control::Stub::Reload, control::v1::ReloadRequest());
  if (!done) return Error{done.error().code, "the configuration was not changed: " + done.error().message};
  const std::vector<std::string> plugins(done->plugins().begin(), done->plugins().end());
  const std::vector<std::string> restart(done->restart_needed().begin(), done->restart_needed().end());
  if (invocation.has("json")) {
    fmt::print("{}", to_text({{"plugins", plugins}, {"restart_needed", restart}}));
    return {};
  }
  print_line(
      fmt::format("reloaded; plugins: {}", plugins.empty() ? "none" : fmt::format("{}", fmt::join(plugins, ", "))));
  for (const std::string& key : restart) print_line(key + " has changed; restart topoletd to apply it");
  return {};
}

}  // namespace topolet::cli
