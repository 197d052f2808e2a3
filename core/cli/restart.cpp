#include <fmt/format.h>
#include <signal.h>

#include <cerrno>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/cli/command.hpp"
#include "core/cli/daemon_client.hpp"
#include "core/cli/options.hpp"
#include "core/cli/output.hpp"

namespace topolet::cli {
namespace {

using control::v1::StatusResponse;

/// Calls under way get five seconds, and a large database takes a while to open.
constexpr std::chrono::seconds kPatience{90};
constexpr std::chrono::milliseconds kCheckEvery{50};

bool has_ended(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

/// None while the two processes change places.
std::optional<StatusResponse> ask_status(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return std::nullopt;
  auto status = daemon->call(&control::v1::Control::Stub::Status, control::v1::StatusRequest());
  if (!status) return std::nullopt;
  return *std::move(status);
}

Result<StatusResponse> wait_for(const Invocation& invocation, pid_t process) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < until) {
    const bool ended = has_ended(process);
    if (std::optional<StatusResponse> status = ask_status(invocation); status && status->process() == process)
      return *std::move(status);
    if (ended) {
      return Error{Code::kFailedPrecondition,
                   fmt::format("the new topoletd, process {}, ended without taking over; its log says why. The one "
                               "before goes on, unless `topolet status` says otherwise",
                               process)};
    }
    std::this_thread::sleep_for(kCheckEvery);
  }
  return Error{Code::kDeadlineExceeded, fmt::format("the new topoletd, process {}, has not taken over within {} s; see "
                                                    "its log",
                                                    process, kPatience.count())};
}

}  // namespace

void declare_restart(Options& options) {
  declare_location(options);
  declare_json(options);
}

Status restart(const Invocation& invocation) {
  auto daemon = DaemonClient::connect(invocation);
  if (!daemon) return daemon.error();
  const auto before = daemon->call(&control::v1::Control::Stub::Status, control::v1::StatusRequest());
  if (!before) return before.error();
  const auto started = daemon->call(&control::v1::Control::Stub::Restart, control::v1::RestartRequest());
  if (!started) return started.error();
  const auto now = wait_for(invocation, started->process());
  if (!now) return now.error();
  if (invocation.has("json")) {
    fmt::print("{}", to_text({{"process", now->process()},
                              {"version", now->version()},
                              {"process_before", before->process()},
                              {"version_before", before->version()}}));
    return {};
  }
  print_line(fmt::format("topoletd {}, process {}, has taken over from {}, process {}", now->version(), now->process(),
                         before->version(), before->process()));
  return {};
}

}  // namespace topolet::cli
