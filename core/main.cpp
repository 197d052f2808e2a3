#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.hpp"
#include "core/base/log.hpp"
#include "core/daemon/daemon.hpp"
#include "core/daemon/setup.hpp"
#include "core/options.hpp"
#include "core/plugin/control_thread.hpp"
#include "core/plugin/crash_log.hpp"
#include "core/plugin/crash_mark.hpp"

namespace topolet {
namespace {

constexpr int kFine = 0;
constexpr int kFailed = 1;
constexpr int kWrongUse = 2;
constexpr int kNowhere = -1;

/// True if nothing is wrong.
bool report_mistakes(const Setup& setup) {
  const std::vector<std::string> mistakes = setup.mistakes();
  for (const std::string& mistake : mistakes) fmt::print(stderr, "{}\n", mistake);
  return mistakes.empty();
}

int print_help(const RawConfig& raw) {
  stamp_crashes_to(kNowhere);
  fmt::print("{}", help_text(sections_of(make_setup(raw).plugins)));
  return kFine;
}

int check_config(const RawConfig& raw) {
  stamp_crashes_to(kNowhere);
  const Setup setup = make_setup(raw);
  if (!report_mistakes(setup)) return kFailed;
  fmt::print("the configuration is fine\n");
  return kFine;
}

/// Signals that end the daemon are waited for by one thread; all others have them blocked from the start.
sigset_t block_signals() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

void wait_for_end(const sigset_t& signals, Daemon& daemon) {
  while (true) {
    int signal = 0;
    if (sigwait(&signals, &signal) != 0) continue;
    if (signal != SIGHUP) return;
    static_cast<void>(daemon.reload());  // says itself how it went
  }
}

int cannot_start(const Error& why) {
  fmt::print(stderr, "topoletd cannot start: {}\n", why.message);
  return kFailed;
}

/// Before any plugin is loaded, as its constructors may be what crashes.
Result<std::unique_ptr<CrashLog>> open_crash_log(const std::filesystem::path& state_dir, Log& log) {
  auto opened = CrashLog::open(state_dir / "plugin-crashes", Clock().wall().count());
  if (!opened) return opened;
  for (const std::string& line : (*opened)->describe_news()) log.error("{}", line);
  stamp_crashes_to((*opened)->fd());
  return opened;
}

int serve_until_end(const Setup& setup, const sigset_t& signals, const Daemon::Surroundings& surroundings) {
  auto daemon = Daemon::start(setup, surroundings);
  if (!daemon) return cannot_start(daemon.error());
  wait_for_end(signals, **daemon);
  surroundings.log->info("stopping; containers stay where they are");
  (*daemon)->stop();
  if ((*daemon)->must_exit_at_once()) ::_exit(kFine);
  return kFine;
}

int serve(const RawConfig& raw, const std::vector<std::string>& arguments) {
  const CheckedConfig core = check(raw, {});
  // Its mistakes are told together with those of the plugins.
  if (!core.mistakes.empty()) return report_mistakes(make_setup(raw)) ? kFailed : kWrongUse;
  const sigset_t signals = block_signals();
  const auto log = make_stderr_log();
  if (Status set = set_level(*log, core.options.daemon.log_level); !set) return cannot_start(set.error());
  const auto crashes = open_crash_log(core.options.daemon.state_dir, *log);
  if (!crashes) return cannot_start(crashes.error());

  ControlThread control({.limit = core.options.placement.plugin_timeout, .log = log});
  const Setup setup = make_setup(raw, {}, {.thread = &control, .crashes = crashes->get()});
  const int code = report_mistakes(setup) ? serve_until_end(setup, signals,
                                                            {.read_config = [arguments] { return read_raw(arguments); },
                                                             .log = log,
                                                             .control = control,
                                                             .crashes = **crashes})
                                          : kWrongUse;
  // What holds an instance is gone, so that all of them end now.
  control.drain();
  if (control.has_abandoned_calls()) ::_exit(code);
  stamp_crashes_to(kNowhere);
  return code;
}

int run(const std::vector<std::string>& arguments) {
  const RawConfig raw = read_raw(arguments);
  if (raw.help) return print_help(raw);
  if (raw.version) {
    fmt::print("topoletd {}\n", TOPOLET_VERSION);
    return kFine;
  }
  return raw.check_config ? check_config(raw) : serve(raw, arguments);
}

}  // namespace
}  // namespace topolet

int main(int argc, char** argv) {
  try {
    return topolet::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "topoletd cannot go on: {}\n", error.what());
    return 1;
  }
}
