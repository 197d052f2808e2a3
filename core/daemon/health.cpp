// The daemon's health, checked when somebody asks and every second for the readers of the watch socket.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/log.hpp"
#include "core/daemon/daemon.hpp"
#include "core/daemon/describe_status.hpp"
#include "core/daemon/illness.hpp"

namespace topolet::daemon {
namespace {

/// The time within which readers of the watch socket see a change.
constexpr std::chrono::milliseconds kHealthAge{1000};
/// The time that the operator waits for the engine. Longer than decisions take: an engine that has not answered by then
/// hangs.
constexpr std::chrono::seconds kSummaryPatience{5};

/// Since when it is so does not make it another illness.
bool is_same(const std::vector<Illness>& a, const std::vector<Illness>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Illness& one, const Illness& other) {
    return one.code == other.code && one.severity == other.severity && one.subject == other.subject &&
           one.sentence == other.sentence && one.count == other.count;
  });
}

std::vector<PluginFacts> facts_of(const std::vector<plugin::PluginDescription>& plugins) {
  std::vector<PluginFacts> facts;
  for (const plugin::PluginDescription& plugin : plugins) {
    PluginFacts& its = facts.emplace_back();
    its.name = plugin.options.name;
    if (plugin.options.required) its.needed_by = "plugins.required";
    if (plugin.options.fail_closed) its.needed_by = "plugins.on-failure";
    its.is_loaded = plugin.library.has_value();
    its.stuck = plugin.stuck;
    its.statistics = plugin.statistics;
  }
  return facts;
}

}  // namespace

/// Reads the denials before the start; if that fails, only later ones are reported.
void Daemon::recall_denials() {
  const std::chrono::milliseconds since = Clock().wall() - kDenialTold;
  const auto rows = store_->recent_denials(since.count());
  if (rows) {
    denials_.begin_with(*rows);
  } else {
    log_->warn("who was denied before the start is not known: {}", rows.error().message);
  }
}

/// `engine`: null if it did not answer.
std::vector<Illness> Daemon::illnesses(const engine::EngineSummary* engine) const {
  const std::chrono::milliseconds now = Clock().wall();
  return find_illnesses({.runtime = options_.runtime,
                         .runtime_connected = proxy_->connected(),
                         .runtime_answers = runtime_probe_->answers(),
                         .state_dir = options_.state_dir.string(),
                         .store_damage = store_damage_->get(),
                         .reload_failed = !reload_error_.get().empty(),
                         .watch_error = watch_error_.get(),
                         .restart_needed = restart_needed_.get(),
                         .engine = engine,
                         .plugins = facts_of(plugins_->describe()),
                         .denials = denials_.until(now),
                         .now = now});
}

/// Watches the daemon's health. To be called when all parts are there. Sends changes to the readers of the watch
/// socket.
void Daemon::watch_health() {
  health_watch_ = std::make_unique<Watchdog>(
      Watchdog::Options{.every = kHealthAge}, std::vector<Watchdog::Loop>(),
      [this, told = std::vector<Illness>(), is_told = false]() mutable {
        runtime_probe_->check();
        if (!feed_) return;
        const Result<engine::EngineSummary> engine = engine_->summary(kSummaryPatience);
        std::vector<Illness> found = illnesses(engine ? &*engine : nullptr);
        if (std::exchange(is_told, true) && is_same(found, told)) return;
        watch::v1::IllnessList list;
        tell_illnesses(found, list);
        feed_->set_illnesses(std::move(list));
        told = std::move(found);
      },
      *log_);
}

Status Daemon::report(const config::DaemonOptions& options, control::v1::StatusResponse& response) {
  const Result<engine::EngineSummary> engine = engine_->summary(kSummaryPatience);
  if (!engine) return engine.error();
  const auto uptime = std::chrono::steady_clock::now() - started_;
  describe_status({.version = TOPOLET_VERSION,
                   .process = ::getpid(),
                   .uptime = std::chrono::duration_cast<std::chrono::seconds>(uptime),
                   .listen = options.listen,
                   .runtime = options.runtime,
                   .runtime_connected = proxy_->connected(),
                   .state_dir = options.state_dir.string(),
                   .store_damage = store_damage_->get(),
                   .illnesses = illnesses(&*engine),
                   .nri = nri_facts()},
                  *engine, response);
  tell_load_state(*response.mutable_load());
  return {};
}

}  // namespace topolet::daemon
