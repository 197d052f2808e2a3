#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "core/base/log.hpp"
#include "core/daemon/daemon.hpp"
#include "core/daemon/setup.hpp"
#include "core/options.hpp"

namespace topolet {
namespace {

constexpr int kFine = 0;
constexpr int kFailed = 1;
constexpr int kWrongUse = 2;

/// True if nothing is wrong.
bool report_mistakes(const Setup& setup) {
  const std::vector<std::string> mistakes = setup.mistakes();
  for (const std::string& mistake : mistakes) fmt::print(stderr, "{}\n", mistake);
  return mistakes.empty();
}

int print_help(const RawConfig& raw) {
  fmt::print("{}", help_text(sections_of(make_setup(raw).plugins)));
  return kFine;
}

int check_config(const RawConfig& raw) {
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

int serve(const RawConfig& raw, const std::vector<std::string>& arguments) {
  const Setup setup = make_setup(raw);
  if (!report_mistakes(setup)) return kWrongUse;
  const sigset_t signals = block_signals();
  const auto log = make_stderr_log();
  if (Status set = set_level(*log, setup.config.options.daemon.log_level); !set) {
    fmt::print(stderr, "{}\n", set.error().message);
    return kWrongUse;
  }
  auto daemon = Daemon::start(
      setup, [arguments] { return read_raw(arguments); }, log);
  if (!daemon) {
    fmt::print(stderr, "topoletd cannot start: {}\n", daemon.error().message);
    return kFailed;
  }
  wait_for_end(signals, **daemon);
  log->info("stopping; containers stay where they are");
  (*daemon)->stop();
  if ((*daemon)->must_exit_at_once()) ::_exit(kFine);
  return kFine;
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
