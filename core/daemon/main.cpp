#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/daemon_log.hpp"
#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/log.hpp"
#include "core/base/standard_streams.hpp"
#include "core/config/options.hpp"
#include "core/daemon/daemon.hpp"
#include "core/plugin/host/control_thread.hpp"
#include "core/plugin/host/crash_log.hpp"
#include "core/plugin/host/crash_mark.hpp"
#include "core/plugin/host/inspect_plugins.hpp"
#include "core/plugin/host/loaded_config.hpp"
#include "core/preflight/preflight.hpp"

namespace topolet::daemon {
namespace {

constexpr int kNoCrashLog = -1;

/// True if nothing is wrong.
bool report_mistakes(const plugin::LoadedConfig& setup) {
  const std::vector<std::string> mistakes = setup.mistakes();
  for (const std::string& mistake : mistakes) print_error_line(mistake);
  return mistakes.empty();
}

int print_help(const config::RawConfig& raw) {
  fmt::print("{}", help_text(plugin::inspect_options(raw)));
  return kExitSuccess;
}

/// True if nothing stands in the way of a start.
bool report_findings(const preflight::Findings& found) {
  for (const config::ConfigMistake& mistake : found.mistakes) print_error_line(mistake.to_string());
  for (const config::ConfigMistake& warning : found.warnings) print_error_line("warning: " + warning.to_string());
  return found.mistakes.empty();
}

int check_config(const config::RawConfig& raw) {
  if (!report_findings(preflight::check(raw))) return kExitUsage;
  fmt::print("the configuration is valid\n");
  return kExitSuccess;
}

/// Signals that end the daemon are waited for by one thread; all others have them blocked from the start.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

void handle_signals(const sigset_t& signals, Daemon& daemon) {
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) return;
    static_cast<void>(daemon.reload());  // says itself how it went
  }
}

int cannot_start(Log& log, const Error& why) {
  log.flush();  // so that the lines that led here come first
  print_error_line("topoletd cannot start: " + why.message);
  return kExitFailure;
}

/// Before any plugin is loaded, as its constructors may be what crashes.
Result<std::unique_ptr<plugin::CrashLog>> open_crash_log(const std::filesystem::path& state_dir, Log& log) {
  auto opened = plugin::CrashLog::open(state_dir / "plugin-crashes", Clock().wall().count());
  if (!opened) return opened;
  if (!(*opened)->why_not_kept().empty()) log.error("{}", (*opened)->why_not_kept());
  for (const std::string& line : (*opened)->describe_new_crashes()) log.error("{}", line);
  log.flush();  // they are told only once, and the plugins loaded next may crash
  plugin::record_crashes_to((*opened)->fd());
  return opened;
}

[[noreturn]] void exit_at_once(Log& log, int code) {
  log.flush();
  ::_exit(code);
}

int serve_until_end(const plugin::LoadedConfig& setup, const sigset_t& signals, const Daemon::Deps& deps) {
  auto daemon = Daemon::start(setup, deps);
  if (!daemon) return cannot_start(*deps.log, daemon.error());
  handle_signals(signals, **daemon);
  deps.log->info("stopping; containers keep running where they are");
  (*daemon)->stop();
  if ((*daemon)->must_exit_at_once()) exit_at_once(*deps.log, kExitSuccess);
  return kExitSuccess;
}

int run_daemon(const config::RawConfig& raw, const std::vector<std::string>& arguments) {
  const config::ValidatedConfig core = validate_config(raw, {});
  // All that is wrong is told at once, and no plugin runs in this process before.
  if (!core.mistakes.empty() || !preflight::check_environment(raw, core).mistakes.empty()) {
    return report_findings(preflight::check(raw)) ? kExitFailure : kExitUsage;
  }
  const sigset_t signals = block_signals();
  const auto log = make_daemon_log();
  if (Status set = set_level(*log, core.options.daemon.log_level); !set) return cannot_start(*log, set.error());
  const auto crashes = open_crash_log(core.options.daemon.state_dir, *log);
  if (!crashes) return cannot_start(*log, crashes.error());

  plugin::ControlThread control({.limit = core.options.placement.plugin_timeout, .log = log});
  const plugin::LoadedConfig setup = plugin::load_config(raw, {}, {.thread = &control, .crashes = crashes->get()});
  if (!setup.mistakes().empty()) log->flush();  // so that what was logged while loading comes first
  const int code = report_mistakes(setup)
                       ? serve_until_end(setup, signals,
                                         {.read_config = [arguments] { return config::read_raw(arguments); },
                                          .log = log,
                                          .control = control,
                                          .crashes = **crashes})
                       : kExitUsage;
  // What holds an instance is gone, so that all of them end now.
  control.drain();
  if (control.has_abandoned_calls()) exit_at_once(*log, code);
  plugin::record_crashes_to(kNoCrashLog);
  return code;
}

int run(const std::vector<std::string>& arguments) {
  const config::RawConfig raw = config::read_raw(arguments);
  if (raw.help) return print_help(raw);
  if (raw.version) {
    fmt::print("topoletd {}\n", TOPOLET_VERSION);
    return kExitSuccess;
  }
  return raw.check_config ? check_config(raw) : run_daemon(raw, arguments);
}

}  // namespace
}  // namespace topolet::daemon

int main(int argc, char** argv) {
  topolet::fill_closed_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error of the write
  // hwloc complains over many lines of stderr whenever CPUs that are offline make a machine look odd.
  ::setenv("HWLOC_HIDE_ERRORS", "2", 0);
  try {
    return topolet::finish_output("topoletd", topolet::daemon::run({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    if (const auto lost = topolet::report_lost_output("topoletd", error)) return *lost;
    topolet::print_error_line(fmt::format("topoletd failed: {}", error.what()));
    return topolet::kExitFailure;
  }
}
