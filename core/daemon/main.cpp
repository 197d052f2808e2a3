#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/daemon_log.hpp"
#include "core/base/end_process.hpp"
#include "core/base/escape.hpp"
#include "core/base/exit_status.hpp"
#include "core/base/log.hpp"
#include "core/base/standard_streams.hpp"
#include "core/base/unique_fd.hpp"
#include "core/config/options.hpp"
#include "core/daemon/daemon.hpp"
#include "core/daemon/respawn.hpp"
#include "core/daemon/service_manager.hpp"
#include "core/daemon/take_over.hpp"
#include "core/plugin/guard/control_thread.hpp"
#include "core/plugin/guard/crash_log.hpp"
#include "core/plugin/guard/crash_mark.hpp"
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

/// Signals are waited for by the main thread; all threads have them blocked from the start.
sigset_t block_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

/// None where nobody can take over: then a restart fails calls, and that is all.
std::unique_ptr<TakeOverSocket> open_take_over_socket(const config::DaemonOptions& options, Log& log) {
  auto opened = TakeOverSocket::open(take_over_path(options));
  if (opened) return *std::move(opened);
  log.error("no other topoletd can take this one's place: {}", opened.error().message);
  return nullptr;
}

enum class End : std::uint8_t { kAsked, kReplaced, kMustRespawn };

/// Until a signal ends this process, or another one has taken its place.
End serve(const sigset_t& signals, Daemon& daemon, const config::DaemonOptions& options, Log& log) {
  auto take_over = open_take_over_socket(options, log);
  const UniqueFd signal_fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  while (true) {
    std::array<pollfd, 2> waits{{{signal_fd.get(), POLLIN, 0}, {take_over ? take_over->fd() : -1, POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    for (signalfd_siginfo signal{}; ::read(signal_fd.get(), &signal, sizeof(signal)) == sizeof(signal);) {
      if (signal.ssi_signo != SIGHUP) return End::kAsked;
      static_cast<void>(daemon.reload());  // says itself how it went
    }
    std::optional<Successor> successor = waits[1].revents != 0 ? take_over->accept() : std::nullopt;
    if (!successor) continue;
    // So that the successor can bind it.
    const auto release_path = [&take_over] { take_over.reset(); };
    if (daemon.hand_over(*successor, release_path)) return End::kReplaced;
    if (daemon.must_respawn()) return End::kMustRespawn;
  }
}

/// Until the calls under way have ended.
void wait_until_deserted(const sigset_t& signals, const Daemon& daemon, std::chrono::milliseconds longest) {
  constexpr timespec kCheckEvery{0, 100'000'000};
  const auto until = std::chrono::steady_clock::now() + longest;
  while (!daemon.is_deserted() && std::chrono::steady_clock::now() < until) {
    const int signal = ::sigtimedwait(&signals, nullptr, &kCheckEvery);
    if (signal == SIGINT || signal == SIGTERM) return;
  }
}

int cannot_start(Log& log, const Error& why) {
  log.flush();  // so that the lines that led here come first
  print_error_line("topoletd cannot start: " + why.message);
  notify_status("cannot start: " + why.message);
  return kExitFailure;
}

/// Before any plugin is loaded, as its constructors may be what crashes.
Result<std::unique_ptr<plugin::CrashLog>> open_crash_log(const std::filesystem::path& state_dir,
                                                         bool may_make_directory, Log& log) {
  auto opened = plugin::CrashLog::open(state_dir / "plugin-crashes", Clock().wall().count(), may_make_directory);
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

int serve_until_end(const plugin::LoadedConfig& setup, const sigset_t& signals, const Daemon::Deps& deps,
                    const Respawn& respawn) {
  auto daemon = Daemon::start(setup, deps);
  if (!daemon) return cannot_start(*deps.log, daemon.error());
  const config::DaemonOptions& options = setup.config.options.daemon;
  const End end = serve(signals, **daemon, options, *deps.log);
  if (end == End::kMustRespawn) return respawn.run(options, (*daemon)->take_sockets(), *deps.log);
  if (end == End::kReplaced && (*daemon)->must_exit_at_once()) exit_at_once(*deps.log, kExitSuccess);
  if (end == End::kReplaced) wait_until_deserted(signals, **daemon, options.drain_timeout);
  deps.log->info(end == End::kReplaced ? "all calls of the process that was replaced have ended"
                                       : "stopping; containers keep running where they are");
  (*daemon)->stop();
  if ((*daemon)->must_exit_at_once()) exit_at_once(*deps.log, kExitSuccess);
  return kExitSuccess;
}

/// The sockets to start with, if this process takes another one's place. An error names why it cannot.
Result<std::shared_ptr<HandedOver>> take_over(const config::RawConfig& raw, const config::DaemonOptions& options,
                                              std::optional<Predecessor>& predecessor, Log& log) {
  if (std::optional<HandedOver> sockets = inherited_sockets()) return std::make_shared<HandedOver>(*std::move(sockets));
  if (!raw.take_over) return std::shared_ptr<HandedOver>();
  auto asked = Predecessor::ask(options);
  if (!asked) return asked.error();
  predecessor = *std::move(asked);
  if (predecessor) {
    log.info("taking the place of process {}", predecessor->process());
    return std::make_shared<HandedOver>(predecessor->take_sockets());
  }
  log.info("there is no topoletd to take over from; starting as usual");
  return std::shared_ptr<HandedOver>();
}

void log_warnings(Log& log, const std::vector<config::ConfigMistake>& warnings) {
  for (const config::ConfigMistake& warning : warnings) log.warn("{}", warning.to_string());
}

int run_daemon(const config::RawConfig& raw, const std::vector<std::string>& arguments) {
  const config::ValidatedConfig core = validate_config(raw, {});
  const preflight::Findings environment = preflight::check_environment(raw, core);
  if (raw.take_over) {
    // The one that runs goes on if this one could not start.
    if (!report_findings(preflight::check(raw))) return kExitUsage;
  } else if (!core.mistakes.empty() || !environment.mistakes.empty()) {
    // All that is wrong is told at once, and no plugin runs in this process before.
    return report_findings(preflight::check(raw)) ? kExitFailure : kExitUsage;
  }
  const Respawn respawn(arguments);
  const sigset_t signals = block_signals();
  const auto log = make_daemon_log();
  if (Status set = set_level(*log, core.options.daemon.log_level); !set) return cannot_start(*log, set.error());
  log_warnings(*log, environment.warnings);
  std::optional<Predecessor> predecessor;
  const auto sockets = take_over(raw, core.options.daemon, predecessor, *log);
  if (!sockets) return cannot_start(*log, sockets.error());
  // The one before had a directory: if it is gone, somebody has removed it.
  const auto crashes = open_crash_log(core.options.daemon.state_dir, /*may_make_directory=*/*sockets == nullptr, *log);
  if (!crashes) return cannot_start(*log, crashes.error());

  plugin::ControlThread control({.limit = core.options.placement.plugin_timeout, .log = log});
  const plugin::LoadedConfig setup = plugin::load_config(raw, {}, {.thread = &control, .crashes = crashes->get()});
  if (!setup.mistakes().empty()) log->flush();  // so that what was logged while loading comes first
  const int code = report_mistakes(setup)
                       ? serve_until_end(setup, signals,
                                         {.read_config = [arguments] { return config::read_raw(arguments); },
                                          .log = log,
                                          .control = control,
                                          .crashes = **crashes,
                                          .sockets = *sockets,
                                          .on_serving =
                                              [&predecessor] {
                                                if (predecessor) predecessor->report_serving();
                                              },
                                          .start_successor = [&respawn] { return respawn.start_successor(); }},
                                         respawn)
                       : kExitUsage;
  // The owner of the instances is gone, so that all of them end now.
  control.drain();
  if (control.has_abandoned_calls()) exit_at_once(*log, code);
  plugin::record_crashes_to(kNoCrashLog);
  log->flush();
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

namespace {

int run_reporting(const std::vector<std::string>& arguments) {
  try {
    return topolet::finish_output("topoletd", topolet::daemon::run(arguments));
  } catch (const std::exception& error) {
    if (const auto lost = topolet::report_lost_output("topoletd", error)) return *lost;
    topolet::print_error_line(fmt::format("topoletd failed: {}", error.what()));
    return topolet::kExitFailure;
  }
}

}  // namespace

int main(int argc, char** argv) {
  topolet::fill_closed_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);  // a reader that has gone is an error of the write
  // hwloc complains over many lines of stderr whenever CPUs that are offline make a machine look odd.
  ::setenv("HWLOC_HIDE_ERRORS", "2", 0);
  // Plugins may have left threads and exit handlers behind.
  topolet::end_process(run_reporting({argv + 1, argv + argc}));
}
