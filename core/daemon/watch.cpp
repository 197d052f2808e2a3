// What topoletd shows on the watch socket.
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/cri/socket/listener_socket.hpp"
#include "core/daemon/daemon.hpp"
#include "core/watch/messages.hpp"

namespace topolet::daemon {
namespace {

/// How long who asks waits for the engine.
constexpr std::chrono::seconds kFitsPatience{5};
/// Prometheus asks again; what is counted is told in any case.
constexpr std::chrono::seconds kMetricsPatience{1};

}  // namespace

/// Containers are placed whether somebody can watch or not.
void Daemon::open_watch(const config::DaemonOptions& options) {
  if (options.watch.empty()) return;
  const auto fail = [&](const Error& error) {
    feed_.reset();
    metrics_.reset();
    log_->error("nobody can watch topoletd on {} (daemon.watch): {}", options.watch, error.message);
  };
  if (const Status ready = make_parent(options.watch, "daemon.watch"); !ready) return fail(ready.error());
  watch::WatchServer::Options settings{
      .path = options.watch, .group = {}, .max_memory_bytes = options.max_memory_bytes};
  if (!options.watch_group.empty()) {
    const Result<gid_t> group = cri::find_group(options.watch_group);
    if (!group) return fail(group.error());
    settings.group = *group;
  }
  watch::WatchHandlers handlers;
  handlers.fits = [this](const watch::v1::FitsRequest& request, watch::v1::FitsResponse& response) {
    return report_fits(request, response);
  };
  handlers.metrics = [this](watch::v1::MetricsResponse& response) {
    response.set_text(metrics_text());
    return Status();
  };
  metrics_ = std::make_unique<metrics::Metrics>(TOPOLET_VERSION);
  feed_ = std::make_unique<watch::Feed>(watch::Feed::Options{.version = TOPOLET_VERSION});
  cri::Listener::Sockets sockets = deps_.sockets ? std::move(deps_.sockets->watch) : cri::Listener::Sockets();
  auto opened = watch::WatchServer::open(std::move(settings), std::move(sockets), std::move(handlers), *feed_, *log_);
  if (!opened) return fail(opened.error());
  watch_server_ = *std::move(opened);
}

Status Daemon::report_fits(const watch::v1::FitsRequest& request, watch::v1::FitsResponse& response) {
  std::vector<placement::Workload> pending;
  for (const watch::v1::PendingContainer& container : request.pending()) {
    Result<placement::Workload> workload = watch::workload_of(container);
    if (!workload) return workload.error();
    pending.push_back(*std::move(workload));
  }
  const Result<engine::Engine::NodeFits> found = engine_->fits(pending, kFitsPatience);
  if (!found) return found.error();
  const engine::Fits& fits = found->fits;
  if (fits.lost_votes) {
    return Error{Code::kUnavailable, "a policy did not answer, so that it is not known what fits; try again"};
  }
  response.set_generation(fits.generation);
  response.set_instance(feed_->instance());
  response.set_reconciled(found->reconciled);
  for (const engine::NodeFit& node : fits.nodes) {
    watch::v1::NodeFit& told = *response.add_nodes();
    told.set_os_index(node.node);
    told.set_exclusive_cpus(node.exclusive_cpus);
  }
  for (const engine::UnplacedContainer& container : fits.unplaced) {
    watch::v1::Unplaced& told = *response.add_unplaced();
    told.set_pod_uid(container.key.pod_uid);
    told.set_name(container.key.name);
    told.set_reason(container.reason);
  }
  return {};
}

std::string Daemon::metrics_text() const {
  metrics::Moment moment;
  moment.runtime_connected = proxy_->connected();
  const auto promise = std::make_shared<std::promise<metrics::EngineState>>();
  std::future<metrics::EngineState> state = promise->get_future();
  engine_->read_ledger([promise](const engine::Ledger& ledger) {
    promise->set_value(ledger.topology() ? metrics::engine_state_of(ledger, *ledger.topology())
                                         : metrics::EngineState());
  });
  const Result<engine::EngineSummary> summary = engine_->summary(kMetricsPatience);
  // The loop comes to the one after the other.
  if (summary && state.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    moment.engine = state.get();
    moment.engine->reconciled = summary->reconciled;
    moment.engine->store_degraded = summary->store_degraded;
  }
  for (const plugin::PluginDescription& described : plugins_->describe()) {
    const plugin::LostVotes& lost = described.statistics.lost;
    moment.plugins.push_back({described.options.name,
                              described.statistics.calls,
                              {{"late", lost.late},
                               {"failed", lost.failed},
                               {"declined", lost.declined},
                               {"not_asked", lost.not_asked},
                               {"out_of_time", lost.out_of_time}},
                              !described.statistics.quarantine.empty()});
  }
  return metrics_->text(moment);
}

/// Of options only those that cannot hold a secret: numbers, and words that the plugin has a list of.
watch::v1::PluginList Daemon::list_plugins() const {
  watch::v1::PluginList list;
  for (const plugin::PluginDescription& described : plugins_->describe()) {
    watch::v1::Plugin& plugin = *list.add_plugins();
    plugin.set_id(described.options.name);
    plugin.set_required(described.options.required);
    if (!described.library) continue;
    plugin.set_version(described.library->version());
    for (const config::OptionSpec& declared : described.library->options()) {
      const bool is_any_text = declared.type == config::OptionType::kString && declared.allowed.empty();
      const auto value = described.options.values.find(declared.key);
      if (is_any_text || value == described.options.values.end()) continue;
      (*plugin.mutable_options())[declared.key] = value->second;
    }
  }
  return list;
}

}  // namespace topolet::daemon
