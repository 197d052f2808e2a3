#include "core/metrics/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/cri/methods.hpp"
#include "core/engine/state/fragmentation.hpp"
#include "core/engine/state/ledger.hpp"
#include "core/engine/state/transition.hpp"
#include "core/metrics/process.hpp"
#include "core/metrics/table.hpp"
#include "core/placement/move_kind.hpp"
#include "core/placement/node_demand.hpp"
#include "core/placement/reason_codes.hpp"

namespace topolet::metrics {
namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using Buckets = prometheus::Histogram::BucketBoundaries;

/// Seconds. Calls to a runtime take from a fraction of a millisecond to the minutes of a pull.
const Buckets kCallBuckets = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                              0.5,    1,     2.5,    5,     10,   30,    60,   120};
/// Buckets for topoletd's own share of a call's time.
const Buckets kOwnBuckets = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
/// A disk may be full, or a file system frozen, for minutes.
const Buckets kCommitBuckets = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                0.1,    0.25,    0.5,    1,     2.5,    10,    60,   600};

constexpr std::array<std::string_view, 17> kCodes = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

/// Reason codes are the core's, and few; plugins have no say in them.
constexpr std::size_t kMostReasonCodes = 64;

double seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

void add_engine(const EngineState& engine, std::vector<MetricFamily>& families) {
  const auto put = [&families](const Table& table) { families.push_back(table.family()); };
  put(Table("topolet_generation", "The generation of the ledger.").add(static_cast<double>(engine.generation)));
  put(Table("topolet_reconciled", "Whether the ledger was compared with the runtime since the start.")
          .add(engine.reconciled ? 1 : 0));
  put(Table("topolet_store_degraded", "Whether changes wait for a state database that takes none.")
          .add(engine.store_degraded ? 1 : 0));
  put(Table("topolet_squeezed_containers", "Containers that do not have the CPUs they should, as CPUs are gone.")
          .add(engine.squeezed));
  put(Table("topolet_overlapping_containers", "Containers that run on CPUs which another one has exclusively.")
          .add(engine.overlapping));
  put(Table("topolet_overruled_containers", "Containers whose CPUs something else than topolet sets.")
          .add(engine.overruled));
  put(Table("topolet_stuck_containers", "Containers that do not leave CPUs, which nobody else is given alone then.")
          .add(engine.stuck));
  Table containers("topolet_containers", "Containers by how they have CPUs.");
  for (const auto& [mode, count] : engine.containers) containers.add(count, {{"mode", mode}});
  put(containers);
  Table foreign("topolet_foreign_containers", "Containers that topolet does not place, by runtime handler.");
  for (const auto& [handler, count] : engine.foreign) foreign.add(count, {{"handler", handler}});
  put(foreign);
  Table pool("topolet_pool_cpus", "CPUs that containers share.");
  Table exclusive("topolet_exclusive_cpus", "CPUs that one container each has alone.");
  Table lost("topolet_lost_exclusive_cpus",
             "CPUs that one container each was given alone, and does not have so, as far as was seen.");
  Table withheld("topolet_withheld_cpus", "CPUs that are kept idle for a container.");
  Table reserved("topolet_reserved_cpus", "CPUs that are reserved for the system.");
  Table requested("topolet_requested_cpus", "CPUs that containers request, divided as they run.");
  Table wide("topolet_wide_containers",
             "Containers on more NUMA nodes than their exclusive CPUs need, on each of them.");
  for (const NodeUsage& usage : engine.nodes) {
    const Labels node = {{"numa_node", usage.node}};
    pool.add(static_cast<double>(usage.pool_cpus), node);
    exclusive.add(static_cast<double>(usage.exclusive_cpus), node);
    lost.add(static_cast<double>(usage.lost_exclusive_cpus), node);
    withheld.add(static_cast<double>(usage.withheld_cpus), node);
    reserved.add(static_cast<double>(usage.reserved_cpus), node);
    requested.add(static_cast<double>(usage.requested_milli) / 1000, node);
    wide.add(static_cast<double>(usage.could_be_narrower), node);
  }
  for (const Table& table : {pool, exclusive, lost, withheld, reserved, requested, wide}) put(table);
}

void add_store(const StoreFigures& store, std::vector<MetricFamily>& families) {
  families.push_back(Table("topolet_store_bytes", "The size of the state database and its log.")
                         .add(static_cast<double>(store.bytes))
                         .family());
  if (!store.oldest_decision_ms) return;
  families.push_back(Table("topolet_store_oldest_decision_time_seconds",
                           "When the oldest decision that is kept was made, in seconds since 1970.")
                         .add(static_cast<double>(*store.oldest_decision_ms) / 1000)
                         .family());
}

void add_largest_exclusive(const std::map<std::string, std::uint32_t>& by_node, std::vector<MetricFamily>& families) {
  Table largest("topolet_largest_exclusive_cpus", "The most CPUs that one new container could get for itself.");
  for (const auto& [node, cpus] : by_node) largest.add(cpus, {{"numa_node", node}});
  families.push_back(largest.family());
}

void add_load(const LoadFigures& load, std::vector<MetricFamily>& families) {
  Table used("topolet_used_cpus", "How much of the CPUs of a NUMA node is used, by whomever.");
  for (const auto& [node, cpus] : load.used_cpus) used.add(cpus, {{"numa_node", node}});
  Table effective("topolet_effective_cpus",
                  "What the CPUs of a NUMA node can do, less than they are where a hypervisor takes time from them.");
  for (const auto& [node, cpus] : load.effective_cpus) effective.add(cpus, {{"numa_node", node}});
  Table held_back("topolet_memory_high_containers", "Containers that memory.high held back in the last ten seconds.");
  if (load.held_back_by_memory_high) held_back.add(*load.held_back_by_memory_high);
  families.push_back(used.family());
  families.push_back(effective.family());
  families.push_back(held_back.family());
  families.push_back(
      Table("topolet_load_age_seconds", "How long ago the load was measured.").add(load.age_seconds).family());
}

void add_plugins(const std::vector<PluginCounts>& plugins, std::vector<MetricFamily>& families) {
  Table calls("topolet_plugin_calls_total", "Calls of a plugin.", MetricType::Counter);
  Table lost("topolet_plugin_lost_votes_total", "Votes of a plugin that did not count, by why.", MetricType::Counter);
  Table late_ticks("topolet_plugin_late_ticks_total", "Ticks of a plugin that were late; they are no votes.",
                   MetricType::Counter);
  Table quarantined("topolet_plugin_quarantined", "Whether a plugin is not asked any more.");
  for (const PluginCounts& plugin : plugins) {
    calls.add(static_cast<double>(plugin.calls), {{"plugin", plugin.id}});
    for (const auto& [why, count] : plugin.lost_votes) {
      lost.add(static_cast<double>(count), {{"plugin", plugin.id}, {"why", why}});
    }
    late_ticks.add(static_cast<double>(plugin.late_ticks), {{"plugin", plugin.id}});
    quarantined.add(plugin.quarantined ? 1 : 0, {{"plugin", plugin.id}});
  }
  for (const Table& table : {calls, lost, late_ticks, quarantined}) families.push_back(table.family());
}

}  // namespace

struct Metrics::Impl {
  /// The metrics of one method. Used on the proxy's thread only.
  struct OfMethod {
    prometheus::Histogram* all = nullptr;    ///< null until the first call
    prometheus::Histogram* added = nullptr;  ///< null until one was answered by the runtime
    std::array<prometheus::Counter*, kCodes.size()> by_code{};
  };

  explicit Impl(const std::string& version) {
    prometheus::BuildGauge()
        .Name("topolet_build_info")
        .Help("The version of topoletd.")
        .Register(registry)
        .Add({{"version", version}})
        .Set(1);
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    prometheus::BuildGauge()
        .Name("topolet_start_time_seconds")
        .Help("When topoletd was started, in seconds since 1970.")
        .Register(registry)
        .Add({})
        .Set(seconds(now));
    note_reload(true);
    for (const std::string& word : engine::audit_event_words()) events[word] = &event_family.Add({{"event", word}});
    for (const std::string& kind : placement::move_kinds()) moves[kind] = &move_family.Add({{"kind", kind}});
  }

  void note_reload(bool succeeded) {
    reload_succeeded.Set(succeeded ? 1 : 0);
    reloaded_at.Set(seconds(std::chrono::system_clock::now().time_since_epoch()));
  }

  void note_move(const engine::Change& change) {
    const std::string_view kind = change.audit
                                      ? placement::move_kind(to_string(change.audit->event), change.audit->reason_code)
                                      : placement::kPoolMove;
    moves.find(kind)->second->Increment();
  }

  void note(const engine::AuditEntry& audit) {
    const std::string event(to_string(audit.event));
    events.at(event)->Increment();
    if (audit.event == engine::AuditEvent::kDenied) denials.Increment();
    if (audit.reason_code == placement::reason_code::kOverruledBegan) overruled.Increment();
    if (audit.reason_code == placement::reason_code::kStuckBegan) stuck.Increment();
    if (audit.reason_code.empty()) return;
    prometheus::Counter*& decision = decisions[{event, audit.reason_code}];
    if (decision == nullptr) {
      const bool is_known = decisions.size() <= kMostReasonCodes * events.size();
      decision = &decision_family.Add({{"outcome", event}, {"reason_code", is_known ? audit.reason_code : "other"}});
    }
    decision->Increment();
    if (audit.times.decide.count() == 0) return;
    decision_seconds.Observe(seconds(audit.times.decide));
    for (const auto& [plugin, time] : audit.times.policies) {
      prometheus::Histogram*& histogram = policies[plugin];
      if (histogram == nullptr) histogram = &policy_family.Add({{"plugin", plugin}}, kOwnBuckets);
      histogram->Observe(seconds(time));
    }
  }

  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& call_family = prometheus::BuildCounter()
                                                             .Name("topolet_cri_calls_total")
                                                             .Help("CRI calls by method and answer.")
                                                             .Register(registry);
  prometheus::Family<prometheus::Histogram>& call_seconds =
      prometheus::BuildHistogram()
          .Name("topolet_cri_call_seconds")
          .Help("How long unary CRI calls take, the runtime's time included.")
          .Register(registry);
  prometheus::Family<prometheus::Histogram>& added_seconds =
      prometheus::BuildHistogram()
          .Name("topolet_cri_added_seconds")
          .Help("How much longer unary CRI calls take than the runtime does.")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& event_family = prometheus::BuildCounter()
                                                              .Name("topolet_audit_events_total")
                                                              .Help("Rows of the audit by event.")
                                                              .Register(registry);
  prometheus::Family<prometheus::Counter>& decision_family = prometheus::BuildCounter()
                                                                 .Name("topolet_decisions_total")
                                                                 .Help("Decisions by what came of them and why.")
                                                                 .Register(registry);
  prometheus::Histogram& decision_seconds = prometheus::BuildHistogram()
                                                .Name("topolet_decision_seconds")
                                                .Help("How long a decision takes, plugins included.")
                                                .Register(registry)
                                                .Add({}, kOwnBuckets);
  prometheus::Family<prometheus::Histogram>& policy_family =
      prometheus::BuildHistogram()
          .Name("topolet_policy_seconds")
          .Help("How long the answers of a plugin take in one decision.")
          .Register(registry);
  prometheus::Histogram& commit_seconds = prometheus::BuildHistogram()
                                              .Name("topolet_store_commit_seconds")
                                              .Help("From a change until it is in the state database.")
                                              .Register(registry)
                                              .Add({}, kCommitBuckets);
  prometheus::Family<prometheus::Counter>& move_family =
      prometheus::BuildCounter()
          .Name("topolet_moves_total")
          .Help("Containers that got other CPUs or memory nodes while they existed, by what moved them.")
          .Register(registry);

  prometheus::Counter& overruled =
      prometheus::BuildCounter()
          .Name("topolet_overruled_total")
          .Help("How often something else than topolet began to set the CPUs of a container.")
          .Register(registry)
          .Add({});

  prometheus::Counter& stuck = prometheus::BuildCounter()
                                   .Name("topolet_stuck_total")
                                   .Help("How often a container turned out not to leave CPUs.")
                                   .Register(registry)
                                   .Add({});

  prometheus::Counter& denials = prometheus::BuildCounter()
                                     .Name("topolet_denials_total")
                                     .Help("Containers denied, each time that the kubelet asked for one.")
                                     .Register(registry)
                                     .Add({});

  prometheus::Gauge& reload_succeeded =
      prometheus::BuildGauge()
          .Name("topolet_reload_succeeded")
          .Help("Whether the configuration is in force as it was read last; the start counts.")
          .Register(registry)
          .Add({});

  prometheus::Gauge& reloaded_at = prometheus::BuildGauge()
                                       .Name("topolet_reload_time_seconds")
                                       .Help("When the configuration was read last, in seconds since 1970.")
                                       .Register(registry)
                                       .Add({});

  std::map<std::string, OfMethod, std::less<>> methods;  ///< the proxy's thread's
  // The loop's.
  std::map<std::string, prometheus::Counter*> events;
  std::map<std::string, prometheus::Counter*, std::less<>> moves;  ///< by kind
  std::map<std::pair<std::string, std::string>, prometheus::Counter*> decisions;
  std::map<std::string, prometheus::Histogram*> policies;
};

Metrics::Metrics(const std::string& version) : impl_(std::make_unique<Impl>(version)) {}

Metrics::~Metrics() = default;

void Metrics::on_call(const cri::FinishedCall& call) {
  const cri::Method method = cri::parse_method(call.path);
  const bool is_known = method.known_unary || method.endless;
  const std::string_view name = is_known ? method.name : "other";
  auto found = impl_->methods.find(name);
  if (found == impl_->methods.end()) found = impl_->methods.emplace(name, Impl::OfMethod()).first;
  Impl::OfMethod& of_method = found->second;
  const std::size_t code = std::min<std::size_t>(static_cast<std::size_t>(call.code), kCodes.size() - 1);
  prometheus::Counter*& counter = of_method.by_code[code];
  if (counter == nullptr) {
    counter = &impl_->call_family.Add({{"method", std::string(name)}, {"code", std::string(kCodes[code])}});
  }
  counter->Increment();
  if (!call.is_unary) return;
  const auto labels = [name] { return Labels{{"method", std::string(name)}}; };
  if (of_method.all == nullptr) of_method.all = &impl_->call_seconds.Add(labels(), kCallBuckets);
  of_method.all->Observe(seconds(call.total));
  if (!call.at_runtime) return;
  if (of_method.added == nullptr) of_method.added = &impl_->added_seconds.Add(labels(), kOwnBuckets);
  of_method.added->Observe(seconds(call.total - *call.at_runtime));
}

void Metrics::on_reload(bool succeeded) { impl_->note_reload(succeeded); }

void Metrics::on_durable(const engine::Transition& transition) {
  for (const engine::Change& change : transition.changes) {
    if (change.kind == engine::ChangeKind::kMoved) impl_->note_move(change);
    if (change.audit) impl_->note(*change.audit);
  }
  for (const engine::RecordedEvent& recorded : transition.recorded_events) impl_->note(recorded.audit);
  impl_->denials.Increment(static_cast<double>(transition.repeated.size()));
}

void Metrics::on_written(const engine::Transition& transition) {
  impl_->commit_seconds.Observe(seconds(std::chrono::steady_clock::now() - transition.committed_at));
}

std::string Metrics::text(const Moment& moment) const {
  std::vector<MetricFamily> families = impl_->registry.Collect();
  families.push_back(Table("topolet_runtime_connected", "Whether the container runtime can be reached and answers.")
                         .add(moment.runtime_connected ? 1 : 0)
                         .family());
  families.push_back(Table("topolet_engine_busy", "Whether the engine did not answer in time when this was asked.")
                         .add(moment.engine ? 0 : 1)
                         .family());
  if (moment.engine) add_engine(*moment.engine, families);
  if (moment.store) add_store(*moment.store, families);
  if (moment.largest_exclusive) add_largest_exclusive(*moment.largest_exclusive, families);
  if (moment.load) add_load(*moment.load, families);
  add_plugins(moment.plugins, families);
  for (MetricFamily& family : process_families("topolet_")) families.push_back(std::move(family));
  std::erase_if(families, [](const MetricFamily& family) { return family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(families);
}

std::vector<NodeUsage> node_usage_of(const engine::Ledger& ledger) {
  std::vector<NodeUsage> nodes;
  if (ledger.topology() == nullptr) return nodes;
  const topology::Topology& topology = *ledger.topology();
  const placement::LedgerSnapshot view = ledger.snapshot();
  const std::vector<placement::NodeDemand> demands = placement::demand_by_node(topology, view.entries);
  CpuSet lost;
  std::vector<CpuSet> wide;
  for (const auto& [key, allocation] : ledger.allocations()) {
    const bool is_lost = allocation.is_exclusive() && seen_mode(allocation) != to_string(allocation.placement.mode);
    if (is_lost) lost |= allocation.placement.cpus;
    if (could_be_narrower(topology, ledger.inventory(), allocation)) wide.push_back(allocation.placement.cpus);
  }
  const auto add = [&](std::string name, const CpuSet& cpus, std::int64_t requested_milli) {
    nodes.push_back({std::move(name), (view.pool & cpus).size(), ((view.exclusive - lost) & cpus).size(),
                     (lost & cpus).size(), (view.withheld & cpus).size(), (view.reserved & cpus).size(),
                     requested_milli, 0});
    for (const CpuSet& of_wide : wide) nodes.back().could_be_narrower += of_wide.intersects(cpus) ? 1 : 0;
  };
  std::int64_t outside_milli = 0;
  for (const placement::LedgerEntry& entry : view.entries) outside_milli += entry.demand.cpu_request_milli;
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    const topology::Node& node = topology.nodes[i];
    outside_milli -= demands[i].cpu_request_milli;
    if (!node.memory_only) add(std::to_string(node.os_index), node.cpus, demands[i].cpu_request_milli);
  }
  if (const CpuSet outside = topology.cpus_outside_nodes(); !outside.empty()) add("none", outside, outside_milli);
  return nodes;
}

}  // namespace topolet::metrics
