// The daemon's answers on the watch socket.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/host_name.hpp"
#include "core/base/log.hpp"
#include "core/cri/socket/listener_socket.hpp"
#include "core/daemon/daemon.hpp"
#include "core/daemon/foreign_handlers.hpp"
#include "core/daemon/overlaps.hpp"
#include "core/machine/cpu_manager_state.hpp"
#include "core/watch/messages.hpp"

namespace topolet::daemon {
namespace {

/// The time that a caller waits for the engine.
constexpr std::chrono::seconds kFitsPatience{5};
/// The computing time for one answer; topolet-agent does not wait for longer either.
constexpr std::chrono::seconds kFitsTime{10};
/// Prometheus asks again; what is counted is told in any case.
constexpr std::chrono::milliseconds kMetricsPatience{700};
/// The computing time for the metrics: topolet-agent waits for three seconds.
constexpr std::chrono::milliseconds kMetricsTime{700};
/// A capacity that was set for a node may count by then.
constexpr std::chrono::seconds kLargestExclusiveAge{60};

}  // namespace

/// Containers are placed whether somebody can watch or not.
void Daemon::open_watch(const config::DaemonOptions& options) {
  if (options.watch.empty()) return;
  const auto fail = [&](const Error& error) {
    feed_.reset();
    metrics_.reset();
    log_->error("nobody can watch topoletd on {} (daemon.watch): {}", options.watch, error.message);
    watch_error_.set(error.message);
  };
  if (const Status ready = make_parent(options.watch, "daemon.watch"); !ready) return fail(ready.error());
  watch::WatchOptions settings{.path = options.watch,
                               .group = {},
                               .max_memory_bytes = options.max_memory_bytes,
                               .memory_claims = memory_claims_};
  if (!options.watch_group.empty()) {
    const Result<gid_t> group = cri::find_group(options.watch_group);
    if (!group) return fail(group.error());
    settings.group = *group;
  }
  watch::WatchHandlers handlers;
  handlers.fits = [this](const auto& request, auto& response, const auto& is_wanted) {
    return report_fits(request, response, is_wanted);
  };
  handlers.metrics = [this](watch::v1::MetricsResponse& response) {
    response.set_text(metrics_text());
    return Status();
  };
  metrics_ = std::make_unique<metrics::Metrics>(TOPOLET_VERSION);
  feed_ = std::make_unique<watch::Feed>(
      watch::Feed::Options{.version = TOPOLET_VERSION, .host = host_name_in_lower_case()});
  cri::Listener::Sockets sockets = deps_.sockets ? std::move(deps_.sockets->watch) : cri::Listener::Sockets();
  auto opened = watch::open_server(std::move(settings), std::move(sockets), std::move(handlers), *feed_, *log_);
  if (!opened) return fail(opened.error());
  watch_server_ = *std::move(opened);
}

Status Daemon::report_fits(const watch::v1::FitsRequest& request, watch::v1::FitsResponse& response,
                           const watch::WatchHandlers::IsWanted& is_wanted) {
  const Result<std::vector<engine::PendingContainer>> pending = watch::pending_of(request);
  if (!pending) return pending.error();
  const auto may_go_on = [&, until = std::chrono::steady_clock::now() + kFitsTime]() -> Status {
    if (!is_wanted()) return watch::nobody_waits();
    if (std::chrono::steady_clock::now() < until) return {};
    return Error{Code::kDeadlineExceeded,
                 fmt::format("what fits beside {} pending containers was not found within {} s; name fewer of them",
                             pending->size(), kFitsTime.count())};
  };
  const Result<engine::Engine::NodeFits> found = engine_->fits(*pending, kFitsPatience, may_go_on);
  if (!found) return found.error();
  Result<watch::v1::FitsResponse> answer = watch::answer_of(found->fits);
  if (!answer) return answer.error();
  response = *std::move(answer);
  // As long as no container has come from that kubelet, only its file tells.
  if (!found->fits.has_own_exclusives && machine::is_cpu_manager_static(options_.cpu_manager_state)) {
    response.set_kubelet_hands_out_cpus(true);
    response.set_gives_exclusive_cpus(false);
  }
  response.set_instance(feed_->instance());
  response.set_reconciled(found->reconciled);
  return {};
}

/// It takes some decisions, so it is done once for a generation.
std::optional<std::map<std::string, std::uint32_t>> Daemon::largest_exclusive(std::uint64_t generation) {
  const auto now = std::chrono::steady_clock::now();
  const auto& known = largest_exclusive_;
  if (known && known->generation == generation && now - known->computed_at < kLargestExclusiveAge) return known->cpus;
  const auto may_go_on = [until = now + kMetricsTime]() -> Status {
    if (std::chrono::steady_clock::now() < until) return {};
    return Error{Code::kDeadlineExceeded, "what fits was not found in time"};
  };
  const Result<engine::Engine::NodeFits> found = engine_->fits({}, kMetricsPatience, may_go_on);
  // Before it is reconciled, others may run here that nobody knows.
  if (!found || !found->reconciled || found->fits.lost_votes) return std::nullopt;
  LargestExclusive largest{found->fits.generation, now, {}};
  for (const engine::NodeFit& node : found->fits.nodes) largest.cpus[std::to_string(node.node)] = node.exclusive_cpus;
  largest_exclusive_ = std::move(largest);
  return largest_exclusive_->cpus;
}

std::string Daemon::metrics_text() {
  metrics::Moment moment;
  moment.runtime_connected = proxy_->connected() && runtime_probe_->answers();
  const auto summary = engine_->summary(kMetricsPatience);
  const auto nodes = engine_->ask(metrics::node_usage_of, kMetricsPatience);
  if (summary && nodes) {
    moment.engine = metrics::EngineState{.generation = summary->generation,
                                         .reconciled = summary->reconciled,
                                         .store_degraded = summary->store_degraded,
                                         .containers = summary->containers,
                                         .squeezed = summary->squeezed,
                                         .overlapping = count_overlapping(summary->overlaps),
                                         .overruled = static_cast<std::uint32_t>(summary->overruled.size()),
                                         .stuck = static_cast<std::uint32_t>(summary->stuck.size()),
                                         .foreign = count_foreign(*summary),
                                         .nodes = *nodes};
    moment.largest_exclusive = largest_exclusive(summary->generation);
  }
  if (const auto figures = store_->figures())
    moment.store = metrics::StoreFigures{figures->bytes, figures->oldest_decision_ms};
  for (const plugin::PluginDescription& described : plugins_->describe()) {
    const plugin::LostVotes& lost = described.statistics.lost;
    moment.plugins.push_back({described.options.name,
                              described.statistics.calls,
                              {{"late", lost.late},
                               {"failed", lost.failed},
                               {"declined", lost.declined},
                               {"not_asked", lost.not_asked},
                               {"out_of_time", lost.out_of_time}},
                              !described.statistics.quarantine.empty(),
                              described.statistics.late_ticks});
  }
  moment.load = load_figures();
  return metrics_->text(moment);
}

watch::v1::PluginList Daemon::list_plugins() const {
  watch::v1::PluginList list;
  for (const plugin::PluginDescription& described : plugins_->describe()) {
    watch::v1::Plugin& plugin = *list.add_plugins();
    plugin.set_id(described.options.name);
    plugin.set_required(described.options.required);
    if (!described.library) continue;
    plugin.set_version(described.library->version());
    for (auto& [key, value] : config::values_without_secrets(described.library->options(), described.options.values))
      (*plugin.mutable_options())[key] = value;
  }
  return list;
}

}  // namespace topolet::daemon
